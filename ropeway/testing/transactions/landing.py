"""Jobs that come into a store of a test when their transaction is committed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ...job.instants import Instant
from ...job.record import NewJob
from ...store.contract import Store
from ...store.values import Added

T = TypeVar("T")


class Lands(Store):
    """A store that takes jobs in when the transaction they were added in is committed."""

    @abstractmethod
    async def land(self, jobs: Sequence[NewJob], at: Instant) -> None:
        """Stores jobs that were added at that instant."""


class Landing:
    """Call it at the commit."""

    def __init__(self, store: Lands, jobs: Sequence[NewJob], at: Instant) -> None:
        self.jobs = jobs
        self._store, self._at = store, at

    def __call__(self) -> None:
        at_once(self._store.land(self.jobs, self._at))


def verdicts(store: Store, bundle: Sequence[NewJob], pending: Sequence[Landing]) -> tuple[list[Added], list[NewJob]]:
    """What an add in a transaction answers, and the jobs that it leaves to the commit."""
    there = {(job.queue, job.id): (job.name, job.data) for landing in pending for job in landing.jobs}
    new: list[NewJob] = []
    answers: list[Added] = []
    for job in bundle:
        [record] = at_once(store.get(job.queue, [job.id]))
        known = there.get((job.queue, job.id)) if record is None else (record.name, record.data)
        if known is None:
            there[job.queue, job.id] = (job.name, job.data)
            new.append(job)
            answers.append(Added(job.id, "created"))
        else:
            answers.append(Added(job.id, "found" if known == (job.name, job.data) else "conflict"))
    if any(answer.verdict == "conflict" for answer in answers):
        return [answer if answer.verdict == "conflict" else Added(answer.id, "skipped") for answer in answers], []
    return answers, new


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """Runs a call of a store in memory, which waits for nothing, wherever a commit happens: a loop or a thread."""
    try:
        while True:
            # It may only let others run for a moment.
            call.send(None)
    except StopIteration as ended:
        answer: T = ended.value
        return answer
