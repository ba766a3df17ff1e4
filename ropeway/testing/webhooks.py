"""Webhooks in tests: nothing is sent, unless to a function of the test."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec

from ..client.queue import Queue
from ..job.record import JobRecord
from ..job.webhooks import DELIVERIES
from ..store.commands import Find
from ..store.contract import Store
from ..store.values import BATCH
from ..webhooks.failures import Unreachable
from ..webhooks.message import message_of
from ..webhooks.reply import Reply
from ..worker.delivering import Deliverer
from ..worker.worker import Worker


class WebhookRequest(msgspec.Struct, frozen=True):
    """What a receiver gets, or would get."""

    url: str
    headers: dict[str, str]
    """Signed if it was sent; of a delivery that waits only `webhook-id`."""
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded


Receiver: TypeAlias = Callable[[WebhookRequest], int | Awaitable[int | None] | None]
"""Answers with a status; None for 200. If it raises, the attempt has failed."""
_WAITING: Final = ("waiting", "delayed")


class ToReceiver:
    """Gives messages to a function of the test, in place of a URL."""

    def __init__(self, receiver: Receiver) -> None:
        self.requests: list[WebhookRequest] = []
        self._receiver = receiver

    async def send(self, url: str, headers: list[tuple[str, str]], body: bytes, allowed: Iterable[str]) -> Reply:
        del allowed  # It goes nowhere.
        request = WebhookRequest(url, dict(headers), body)
        self.requests.append(request)
        try:
            answer = self._receiver(request)
            status = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            raise Unreachable(f"the receiver raised {error!r}") from error
        return Reply(200 if status is None else status, None, b"", 0)

    def close(self) -> None:
        """Has no connections."""


def delivering(store: Store, sender: ToReceiver) -> Worker:
    """A worker that delivers what waits in the store."""
    return Worker(Queue(DELIVERIES, store=store), Deliverer(store, sender).run, webhooks=False)


async def waiting_deliveries(store: Store) -> list[WebhookRequest]:
    page = await store.find(Find(DELIVERIES, _WAITING, limit=BATCH))
    return [_request(record) for record in page.jobs]


def _request(record: JobRecord) -> WebhookRequest:
    extras = record.extras
    assert extras is not None
    assert extras.webhook is not None
    assert extras.origin is not None
    return WebhookRequest(extras.webhook.url, {"webhook-id": record.id}, message_of(record, extras.origin))
