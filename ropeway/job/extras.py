"""Rarely used fields of a job, which stores keep as one text beside it."""

from __future__ import annotations

import msgspec

from .codec import JsonText
from .dedupe import DedupeRule
from .instants import LAST_INSTANT, Instant, Milliseconds
from .numbers import Amount, Priority


class Origin(msgspec.Struct, frozen=True, gc=False):
    """The job whose end added this job: a dead letter, the delivery of a webhook, or a callback of retention."""

    queue: str
    id: str
    reason: str
    attempts: Amount
    """Attempts it had made."""
    at: Instant
    """When it ended."""
    event: str = "failed"
    """The state in which it ended."""
    result: JsonText | None = None
    stage: str | None = None
    """In a callback of retention: what was done to that job, "stale" or "deleted"."""
    priority: Priority = 0
    tags: tuple[str, ...] = ()
    """As it had them, also if it is gone when its dead letter is sent back. Callbacks do not say these."""


class WebhookRule(msgspec.Struct, frozen=True, gc=False):
    """Where the end of a job is reported, and which ends: final states."""

    url: str
    events: tuple[str, ...] = ()
    """Empty in a delivery itself, which has the rule for its URL."""


class Extras(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A job with none of these has no `Extras`, and costs a store nothing. New fields come at the end."""

    start_within: Milliseconds | None = None
    """How long after its add it may be started; later it expires. At most one of this and `start_by`."""
    start_by: Instant | None = None
    dead_letter: str | None = None
    """The queue to which a copy is added when the job fails for good."""
    dedupe: DedupeRule | None = None
    schedule: str | None = None
    """The id of the schedule that made it. `Clean` skips it until it is final."""
    origin: Origin | None = None
    webhook: WebhookRule | None = None

    def deadline(self, created_at: Instant) -> Instant | None:
        """The instant at which it expires unless it was started; None if it never does."""
        if self.start_within is not None:
            return min(created_at + self.start_within, LAST_INSTANT)
        return self.start_by
