"""add: bundles of jobs as parameters of `sql/add.sql`, and its answers. Also the children that `update` adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption
from ...job.record import NewJob
from ...store.answer_codes import ADDED
from ...store.values import Added, JobUpdate
from .encoding import as_json, extras_text
from .flows import flow_of
from .parameters import Parameter, booleans, numbers, text, texts

Bundles: TypeAlias = Sequence[Sequence[NewJob]]


class Arguments(NamedTuple):
    """The parameters of `sql/add.sql`, in its order. None stands for the default in every job."""

    queues: list[str]
    numbers: list[int] | None
    bundles: list[int] | None
    ids: list[str]
    names: list[str]
    datas: list[str]
    options: list[str] | None = None
    priorities: list[int] | None = None
    lifos: list[bool] | None = None
    delays: list[int] | None = None
    dues: list[int | None] | None = None
    tags: list[str | None] | None = None
    flow: str | None = None
    extras: list[str | None] | None = None
    keys: list[str | None] | None = None
    modes: list[str | None] | None = None
    ttls: list[int | None] | None = None

    def parameters(self) -> tuple[Parameter, ...]:
        return (
            texts(self.queues),
            numbers(self.numbers),
            numbers(self.bundles),
            texts(self.ids),
            texts(self.names),
            texts(self.datas),
            texts(self.options),
            numbers(self.priorities),
            booleans(self.lifos),
            numbers(self.delays),
            numbers(self.dues),
            texts(self.tags),
            text(self.flow),
            texts(self.extras),
            texts(self.keys),
            texts(self.modes),
            numbers(self.ttls),
        )


def arguments_of(bundles: Bundles) -> Arguments:
    jobs = [job for bundle in bundles for job in bundle]
    # Mostly there are none, and one pass is enough.
    unusual = [
        job
        for job in jobs
        if job.options != "{}"
        or job.priority
        or job.tags
        or job.parents
        or job.children
        or job.lifo
        or job.delay
        or job.due_at is not None
        or job.extras is not None
    ]
    is_flow = bool(unusual) and any(job.parents or job.children for job in unusual)
    named = {job.queue for job in jobs}
    if is_flow:
        named.update(parent.queue for job in jobs for parent in job.parents)
    # In order: of two calls that make the same queues, one waits for the other.
    queues = sorted(named)
    places = {queue: place for place, queue in enumerate(queues, 1)}
    usual = (
        queues,
        [places[job.queue] for job in jobs] if len(queues) > 1 else None,
        [n for n, bundle in enumerate(bundles) for _ in bundle] if len(bundles) > 1 else None,
        [job.id for job in jobs],
        [job.name for job in jobs],
        [job.data for job in jobs],
    )
    if not unusual:
        return Arguments(*usual)
    return Arguments(
        *usual,
        [job.options for job in jobs] if any(job.options != "{}" for job in unusual) else None,
        [job.priority for job in jobs] if any(job.priority for job in unusual) else None,
        [job.lifo for job in jobs] if any(job.lifo for job in unusual) else None,
        [job.delay for job in jobs] if any(job.delay for job in unusual) else None,
        [job.due_at for job in jobs] if any(job.due_at is not None for job in unusual) else None,
        [as_json(job.tags).decode() if job.tags else None for job in jobs]
        if any(job.tags for job in unusual)
        else None,
        flow_of(jobs, places) if is_flow else None,
        [extras_text(job.extras) for job in jobs] if any(job.extras is not None for job in unusual) else None,
        *_rules(jobs if any(job.extras is not None and job.extras.dedupe is not None for job in unusual) else []),
    )


def _rules(jobs: Sequence[NewJob]) -> tuple[list[str | None] | None, list[str | None] | None, list[int | None] | None]:
    """The keys of dedupe rules, their modes and ttls."""
    rules = [None if job.extras is None else job.extras.dedupe for job in jobs]
    if not rules:
        return None, None, None
    return (
        [None if rule is None else rule.key for rule in rules],
        [None if rule is None else rule.mode for rule in rules],
        [None if rule is None else rule.ttl for rule in rules],
    )


def answers_of(bundles: Bundles, answer: str) -> list[list[Added]]:
    """Reads what `sql/add.sql` returns."""
    if answer.count("c") == len(answer):
        return [[Added(job.id, "created") for job in bundle] for bundle in bundles]
    letters, *found = answer.split(" ")
    verdicts, holders = iter(letters), iter(found)
    return [[_added(job, next(verdicts), holders) for job in bundle] for bundle in bundles]


def _added(job: NewJob, letter: str, holders: Iterator[str]) -> Added:
    verdict = ADDED[letter]
    return Added(next(holders) if verdict == "deduplicated" else job.id, verdict)


def children_given(updates: Sequence[JobUpdate]) -> str | None:
    """JSON for each update, as `sql/lib/give_children.sql` takes it; None if no job gets children."""
    if not any(update.children for update in updates):
        return None
    return as_json([_given(update) if update.children else None for update in updates]).decode()


def _given(update: JobUpdate) -> Mapping[str, object]:
    if update.token is None:
        raise InvalidOption("children", "need the token of the job that gets them")
    return {
        "queues": [child.queue for child in update.children],
        "ids": [child.id for child in update.children],
        "policies": [child.policy for child in update.children],
        "adds": as_json(arguments_of([update.adds])._asdict()).decode(),
    }
