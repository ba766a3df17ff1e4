"""Webhooks as a queue has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import proxy

from ..job.record import JobRecord
from ..job.webhook_options import Webhook, rule_of
from ..job.webhooks import DELIVERIES, delivery_id
from ..store.contract import Store
from ..webhooks.records import environment_hosts, write_settings
from .found import FoundJob, found_job

if TYPE_CHECKING:
    from .queue import Queue


def queue_webhook(given: Any) -> Webhook | None:
    """The webhook of a queue, from its checked option. Refuses a URL to which nothing would be sent."""
    webhook = Webhook(given) if isinstance(given, str) else given or None
    rule_of(None, webhook, environment_hosts())
    return webhook


class WebhookWriter:
    """Stores the secret and the allowed hosts of a queue's webhook, before its first add or when a worker starts."""

    def __init__(self, queue: Queue) -> None:
        # Weak, because the queue has this object: in a cycle, its store would be closed only when garbage is collected.
        self._queue = proxy(queue)
        self._written_to: Store | None = None

    @property
    def is_pending(self) -> bool:
        """True if the queue has such, and they are not stored by this object yet."""
        webhook = self._queue.webhook
        if webhook is None or not (webhook.secrets or webhook.allow_hosts):
            return False
        return self._written_to is not self._queue._store  # noqa: SLF001 - a part of the queue

    async def write(self) -> None:
        webhook = self._queue.webhook
        if webhook is not None and self.is_pending:
            first = self._queue._store  # noqa: SLF001 - a part of the queue
            await write_settings(self._queue.store, self._queue.name, webhook)
            self._written_to = first


async def delivery(queue: Queue, job: JobRecord) -> FoundJob | None:
    """The delivery about the last end of a job."""
    if job.finished_at is None:
        return None
    [record] = await queue.store.get(DELIVERIES, [delivery_id(queue.name, job.id, job.finished_at, job.state)])
    if record is None:
        return None
    return found_job(type(queue)(DELIVERIES, store=queue.store), record)
