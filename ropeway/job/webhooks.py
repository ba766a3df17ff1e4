"""Webhook deliveries: jobs that report the end of another job to a URL.

A job with a `WebhookRule` leaves a delivery in the queue `DELIVERIES`, in the step in which it ends. The delivery holds
all that is sent, so it outlives the job.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import InvalidOption
from .backoff import Backoff
from .codec import JsonText
from .extras import Extras, Origin, WebhookRule
from .instants import LAST_INSTANT, Instant
from .names import LONGEST_ID
from .options import StoredOptions
from .record import JobRecord, NewJob
from .retention import Retention
from .states import FINAL

DELIVERIES: Final = "ropeway.webhooks"
"""The queue of deliveries."""

_HOUR: Final = 3_600_000

DELIVERY_OPTIONS: Final[JsonText] = (
    msgspec.json.encode(
        StoredOptions(
            # The retries span about a day: 10 s, doubled up to 6 hours.
            attempts=15,
            backoff=Backoff("exponential", 10_000, 6 * _HOUR, 0.2),
            timeout=30_000,
            keep_completed=Retention(age=7 * 24 * _HOUR, count=10_000),
            keep_failed=Retention(age=30 * 24 * _HOUR, count=100_000),
        )
    )
).decode()


def delivery_id(queue: str, id: str, at: Instant, event: str) -> str:
    """The delivery about the end of a job at its `finished_at`, in the state `event`."""
    return f"{queue}:{id}:{at}:{event}"


def delivery_of(job: JobRecord, webhook: WebhookRule, at: Instant) -> NewJob:
    """The delivery about a job that has just ended. Its own end is not reported."""
    origin = Origin(
        job.queue,
        job.id,
        job.reason or "",
        job.attempts_made,
        at,
        job.state,
        job.result,
        priority=job.priority,
        tags=job.tags,
    )
    id = delivery_id(job.queue, job.id, at, job.state)
    extras = Extras(origin=origin, webhook=WebhookRule(webhook.url))
    return NewJob(DELIVERIES, id, job.name, job.data, DELIVERY_OPTIONS, extras=extras)


def check_webhook(queue: str, id: str) -> None:
    """Refuses what could not be stored once the job has ended."""
    if queue == DELIVERIES:
        raise InvalidOption("webhook", f"cannot be set for jobs of {DELIVERIES!r}, the queue of deliveries")
    longest = max(len(delivery_id(queue, id, LAST_INSTANT, event)) for event in FINAL)
    if longest > LONGEST_ID:
        raise InvalidOption("id", f"is too long for a job with a webhook, by {longest - LONGEST_ID} characters")
