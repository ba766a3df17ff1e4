"""add: bundles of jobs, each whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from ...job.record import NewJob
from ...store.values import Added
from .parameters import NULL, Parameter, numbers, texts, truths

Bundles: TypeAlias = Sequence[Sequence[NewJob]]

_VERDICTS: Final[dict[str, Literal["created", "found", "conflict", "skipped"]]] = {
    "c": "created",
    "f": "found",
    "x": "conflict",
    "s": "skipped",
}


def parameters_of(bundles: Bundles) -> tuple[list[str], list[Parameter]]:
    """The queues, and all as `sql/add.sql` takes it: what all jobs have in common, or leave as it is, is left out."""
    jobs = [job for bundle in bundles for job in bundle]
    # In order: of two calls that make the same queues, one waits for the other.
    queues = sorted({job.queue for job in jobs})
    places = {queue: place for place, queue in enumerate(queues, 1)}
    return queues, [
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
    ]


def answers_of(bundles: Bundles, letters: str) -> list[list[Added]]:
    if letters.count("c") == len(letters):
        return [[Added(job.id, "created") for job in bundle] for bundle in bundles]
    verdicts = iter(letters)
    return [[Added(job.id, _VERDICTS[next(verdicts)]) for job in bundle] for bundle in bundles]
