"""Adds that a `FakeStore` performs when their transaction is committed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeVar

from ...job.instants import Instant
from ...job.record import NewJob
from ...store.contract import Store
from ...store.values import Added

T = TypeVar("T")


class StoresAtCommit(Store):
    """A store that stores jobs when the transaction in which they were added is committed."""

    @abstractmethod
    async def add_committed(self, jobs: Sequence[NewJob], at: Instant) -> None:
        """Stores jobs that were added at that instant."""


class PendingAdd:
    """Jobs of one add, which wait for the commit: call it then."""

    def __init__(self, store: StoresAtCommit, jobs: Sequence[NewJob], at: Instant) -> None:
        self.jobs = jobs
        self._store, self._at = store, at

    def __call__(self) -> None:
        run_immediately(self._store.add_committed(self.jobs, self._at))


def verdicts(store: Store, bundle: Sequence[NewJob], pending: Sequence[PendingAdd]) -> tuple[list[Added], list[NewJob]]:
    """The answers of an add in a transaction, and the jobs to store at its commit."""
    there = {(job.queue, job.id): (job.name, job.data) for pending_add in pending for job in pending_add.jobs}
    new: dict[tuple[str, str], NewJob] = {}
    answers: list[Added] = []
    for job in bundle:
        [record] = run_immediately(store.get(job.queue, [job.id]))
        known = there.get((job.queue, job.id)) if record is None else (record.name, record.data)
        verdict = _verdict(job, known, new)
        if verdict == "created":
            there[job.queue, job.id] = (job.name, job.data)
            new[job.queue, job.id] = job
        answers.append(Added(job.id, verdict))
    if any(answer.verdict == "conflict" for answer in answers):
        return [answer if answer.verdict == "conflict" else Added(answer.id, "skipped") for answer in answers], []
    return answers, [*new.values()]


def _verdict(
    job: NewJob, known: tuple[str, str] | None, new: Mapping[tuple[str, str], NewJob]
) -> Literal["created", "found", "conflict"]:
    if job.parents:
        # Of a flow: it comes with its parents, or was there with them.
        are_new = {(parent.queue, parent.id) in new for parent in job.parents}
        if are_new == {False}:
            return "found"
        return "created" if known is None and are_new == {True} else "conflict"
    if known is None:
        return "created"
    return "found" if known == (job.name, job.data) else "conflict"


def run_immediately(call: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine of a memory store, which never waits, in any thread, with or without an event loop."""
    try:
        while True:
            # It may only yield to the loop.
            call.send(None)
    except StopIteration as ended:
        answer: T = ended.value
        return answer
