"""Follow-ups: jobs that the end of a job adds to other queues, in the same step: dead letters and deliveries."""

from __future__ import annotations

from collections.abc import Iterator

from .dead_letters import dead_letter_of
from .extras import Extras
from .instants import Instant
from .record import JobRecord, NewJob
from .webhooks import delivery_of


def follow_ups_of(job: JobRecord, extras: Extras, at: Instant) -> Iterator[NewJob]:
    """The follow-ups of a job that has just become final."""
    if job.state == "failed" and extras.dead_letter is not None:
        yield dead_letter_of(job, extras.dead_letter, at)
    if extras.webhook is not None and job.state in extras.webhook.events:
        yield delivery_of(job, extras.webhook, at)
