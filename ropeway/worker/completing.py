"""Completing a job in the transaction of what its handler wrote: both are there after the commit, or neither."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from ..client.portal import run
from ..client.transactions import to_its_end, undo, undo_here
from ..errors import AttemptTimeout, InvalidInput, InvalidMove, JobFinished, LockLost
from ..job.codec import Json, JsonText, encode
from ..job.outcomes import Outcome
from ..store.transactions import Inside, sharing
from ..store.values import Answer

if TYPE_CHECKING:
    from .job import Job


class Completion:
    """What becomes of a job at the end of its block."""

    __slots__ = ("is_ending", "outcome", "result")

    def __init__(self) -> None:
        self.result: JsonText | None = None
        self.is_ending = False
        """From here on its lock is not the worker's to renew."""
        self.outcome: Outcome | None = None
        """Set when it is committed."""


@asynccontextmanager
async def completing(job: Job, using: object) -> AsyncIterator[Any]:
    completion = _begin(job)
    try:
        store = sharing(job.queue.store)
        if using is not None:
            # The store then knows where it is itself, and that a connection leads somewhere else.
            await store.prepare(job.queue.name)
        inside = store.own() if using is None else store.join(using)
        tx = await inside.begin()
        try:
            yield tx
            _refuse_if_told_to_stop(job)
            await to_its_end(_complete(job, inside, completion))
        except BaseException:
            if completion.outcome is None:
                await undo(inside)
            raise
    finally:
        _end(job, completion)


@contextmanager
def completing_here(job: Job, using: object) -> Iterator[Any]:
    """The same for a thread that has no event loop, and waits."""
    completion = _begin(job)
    try:
        store = sharing(job.queue.store)
        if using is not None:
            run(store.prepare(job.queue.name))
        inside = store.own_here() if using is None else store.join_here(using)
        try:
            yield inside.begin()
            _refuse_if_told_to_stop(job)
            outcome = _outcome(job, completion)
            _refuse_if_lost(job, inside.settle(job.queue.name, outcome))
            inside.commit()
            completion.outcome = outcome
        except BaseException:
            if completion.outcome is None:
                try:
                    undo_here(inside)
                finally:
                    # Once more: a second signal may have come in its middle, or as its first step.
                    undo_here(inside)
            raise
    finally:
        _end(job, completion)


async def _complete(job: Job, inside: Inside, completion: Completion) -> None:
    outcome = _outcome(job, completion)
    _refuse_if_lost(job, await inside.settle(job.queue.name, outcome))
    await inside.commit()
    completion.outcome = outcome


def committed(job: Job) -> Outcome | None:
    """How its attempt ended, if its handler committed that in a transaction."""
    return None if job.completion is None else job.completion.outcome


def is_completing(job: Job) -> bool:
    """Whether its completion is being committed, or has been."""
    return job.completion is not None and job.completion.is_ending


def complete_with(job: Job, result: Json) -> None:
    completion = job.completion
    if completion is None or completion.outcome is not None:
        raise InvalidInput("complete_with is for the block of job.transaction(): otherwise return the result")
    value = result if job.dump is None else job.dump(result)
    completion.result = None if value is None else encode(value, "result", job.queue.size_limit)


def _begin(job: Job) -> Completion:
    if job.ended:
        raise JobFinished(job.queue.name, job.id)
    if job.completion is not None:
        if job.completion.outcome is not None:
            raise InvalidMove(job.queue.name, job.id, "complete", "completed", ("active",))
        raise InvalidInput(f"the transaction of {job!r} is open already: it ends with its block")
    job.completion = completion = Completion()
    return completion


def _end(job: Job, completion: Completion) -> None:
    if completion.outcome is None:
        # Nothing has happened: its handler may try again.
        job.completion = None


def _outcome(job: Job, completion: Completion) -> Outcome:
    completion.is_ending = True
    return Outcome(job.id, job.token, "complete", completion.result, keep=job.keep)


def _refuse_if_told_to_stop(job: Job) -> None:
    """A handler may have missed it: one in a thread is not cancelled."""
    if job.signal in ("cancelled", "removed", "lost"):
        raise LockLost(job.queue.name, job.id)
    if job.signal == "timeout":
        raise AttemptTimeout(((job.options and job.options.timeout) or 0) / 1000)


def _refuse_if_lost(job: Job, answer: Answer) -> None:
    # Completed by a commit before, whose answer was lost: what was written since must not be there twice.
    if answer.verdict != "done" or answer.state != "active":
        raise LockLost(job.queue.name, job.id)
