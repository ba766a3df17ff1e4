"""Jobs as they were when they were added."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from ..job.codec import LARGEST_SIZE_LIMIT, Json, decode, encode
from ..job.dedupe import Dedupe, DedupeRule
from ..job.extras import Extras, WebhookRule
from ..job.flows import Child, Parent
from ..job.instants import Instant, Milliseconds
from ..job.options import StoredOptions, read_options, stored_options
from ..job.record import NewJob
from ..job.webhook_options import EVENTS, Webhook

_FIELDS: Final = {"remove_on_complete": "keep_completed", "remove_on_fail": "keep_failed"}
"""Options that are stored under another name."""


_OWN_FIELDS: Final = ("id", "delay", "priority", "lifo", "tags", "expires", "dead_letter", "dedupe", "webhook")
"""Options that are beside the stored ones."""


class AddedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `added` and `assert_added`: the job as it was added, whatever happened to it since."""

    queue: str
    id: str
    name: str
    data: Json
    delay: timedelta
    """Time from the add until it is due; 0 if it is due at once."""
    priority: int
    lifo: bool
    tags: tuple[str, ...]
    options: StoredOptions
    """The remaining options: attempts, backoff, timeout and so on."""
    added_at: Instant
    parents: tuple[Parent, ...] = ()
    """Jobs of its flow that wait for it."""
    children: tuple[Child, ...] = ()
    """Jobs of its flow that it waits for, each with the policy for its failure."""
    expires: timedelta | None = None
    """Time from the add by which it must be started."""
    dead_letter: str | None = None
    dedupe: DedupeRule | None = None
    webhook: WebhookRule | None = None

    def option(self, option: str) -> Any:
        """The value of an option, as it is stored."""
        if option in _OWN_FIELDS:
            return getattr(self, option)
        return getattr(self.options, _FIELDS.get(option, option))

    def expected(self, option: str, given: Any) -> Any:  # noqa: PLR0911 - one for each kind
        """What `option` would return if the job had been added with this value."""
        placement, stored = read_options({option: given})
        match option:
            case "delay":
                return _delay(placement.delay, placement.due_at, self.added_at)
            case "expires":
                return _expires(Extras(placement.start_within, placement.start_by), self.added_at)
            case "dedupe":
                rule = placement.dedupe
                if isinstance(rule, Dedupe):
                    return rule.rule(self.name, encode(self.data, "data", LARGEST_SIZE_LIMIT))
                return rule
            case "webhook":
                return _webhook(placement.webhook, self.webhook)
        if option in _OWN_FIELDS:
            return getattr(placement, option)
        return getattr(stored_options(stored), _FIELDS.get(option, option))

    def __str__(self) -> str:
        placed = {
            "delay": str(self.delay) if self.delay else None,
            "priority": self.priority,
            "lifo": self.lifo,
            "tags": self.tags,
            "expires": str(self.expires) if self.expires else None,
            "dead_letter": self.dead_letter,
            "webhook": None if self.webhook is None else self.webhook.url,
            "dedupe": None if self.dedupe is None else f"{self.dedupe.key} ({self.dedupe.mode})",
        }
        kept = msgspec.to_builtins(self.options)
        # The delay is in both: there in milliseconds, for workers.
        said = "".join(f" {option}={value}" for option, value in {**placed, **kept, **placed}.items() if value)
        return f"{self.name} {self.data!r}{said}"


def added_job(job: NewJob, at: Instant) -> AddedJob:
    extras = Extras() if job.extras is None else job.extras
    return AddedJob(
        queue=job.queue,
        id=job.id,
        name=job.name,
        data=decode(job.data),
        delay=_delay(job.delay, job.due_at, at),
        priority=job.priority,
        lifo=job.lifo,
        tags=job.tags,
        options=stored_options(job.options),
        added_at=at,
        parents=job.parents,
        children=job.children,
        expires=_expires(extras, at),
        dead_letter=extras.dead_letter,
        dedupe=extras.dedupe,
        webhook=extras.webhook,
    )


def _webhook(given: Webhook | str | bool | None, added: WebhookRule | None) -> WebhookRule | None:
    """A URL alone is added with the events of the queue."""
    if isinstance(given, Webhook):
        return given.rule()
    return WebhookRule(given, added.events if added is not None else EVENTS) if isinstance(given, str) else None


def _expires(extras: Extras, at: Instant) -> timedelta | None:
    deadline = extras.deadline(at)
    return None if deadline is None else timedelta(milliseconds=max(0, deadline - at))


def _delay(delay: Milliseconds, due_at: Instant | None, at: Instant) -> timedelta:
    return timedelta(milliseconds=delay if due_at is None else max(0, due_at - at))
