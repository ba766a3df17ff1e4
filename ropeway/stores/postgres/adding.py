"""add: bundles of jobs, each whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from ...job.instants import Instant
from ...job.record import NewJob
from ...store.values import Added
from .parameters import NULL, Parameter, number, numbers, texts, truth, truths

Bundles: TypeAlias = Sequence[Sequence[NewJob]]

ADD: Final = "SELECT * FROM ropeway.add($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
_VERDICTS: Final[dict[str, Literal["created", "found", "conflict", "skipped"]]] = {
    "c": "created",
    "f": "found",
    "x": "conflict",
    "s": "skipped",
}


def parameters_of(bundles: Bundles, now: Instant | None, may_wake: bool | None) -> list[Parameter]:
    """As `sql/add.sql` takes them: what all jobs have in common, or leave as it is, is left out."""
    jobs = [job for bundle in bundles for job in bundle]
    queues = list(dict.fromkeys([job.queue for job in jobs]))
    places = {queue: place for place, queue in enumerate(queues, 1)}
    return [
        texts(queues),
        numbers([places[job.queue] for job in jobs]) if len(queues) > 1 else NULL,
        numbers([n for n, bundle in enumerate(bundles) for _ in bundle]) if len(bundles) > 1 else NULL,
        texts([job.id for job in jobs]),
        texts([job.name for job in jobs]),
        texts([job.data for job in jobs]),
        texts([job.options for job in jobs]) if any(job.options != "{}" for job in jobs) else NULL,
        numbers([job.priority for job in jobs]) if any(job.priority for job in jobs) else NULL,
        truths([job.lifo for job in jobs]) if any(job.lifo for job in jobs) else NULL,
        numbers([job.delay for job in jobs]) if any(job.delay for job in jobs) else NULL,
        numbers([job.due_at for job in jobs]) if any(job.due_at is not None for job in jobs) else NULL,
        number(now),
        truth(may_wake),
    ]


def answers_of(bundles: Bundles, letters: str) -> list[list[Added]]:
    if letters.count("c") == len(letters):
        return [[Added(job.id, "created") for job in bundle] for bundle in bundles]
    verdicts = iter(letters)
    return [[Added(job.id, _VERDICTS[next(verdicts)]) for job in bundle] for bundle in bundles]
