"""Completing a job in the handler's own transaction: its writes and the completion are committed together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from ..client.portal import run
from ..client.transactions import to_its_end, undo, undo_blocking
from ..errors import AttemptTimeout, InvalidInput, InvalidMove, JobFinished, LockLost
from ..job.codec import Json, JsonText, encode
from ..job.outcomes import Outcome
from ..store.transactions import Inside, sharing
from ..store.values import Answer

if TYPE_CHECKING:
    from .job import Job


class Completion:
    """State of one `job.transaction()` block."""

    __slots__ = ("is_ending", "outcome", "result")

    def __init__(self) -> None:
        self.result: JsonText | None = None
        self.is_ending = False
        """True once the outcome is being written: the lock must not be renewed any more."""
        self.outcome: Outcome | None = None
        """Set once it is committed."""


@asynccontextmanager
async def completing(job: Job, using: object) -> AsyncIterator[Any]:
    completion = _begin(job)
    try:
        store = sharing(job.queue.store)
        if using is not None:
            # The store can then detect a connection to another database.
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
def completing_blocking(job: Job, using: object) -> Iterator[Any]:
    """As `completing`, blocking, for a thread without an event loop."""
    completion = _begin(job)
    try:
        store = sharing(job.queue.store)
        if using is not None:
            run(store.prepare(job.queue.name))
        inside = store.own_blocking() if using is None else store.join_blocking(using)
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
                    undo_blocking(inside)
                finally:
                    # Again: a second KeyboardInterrupt may have interrupted the first call.
                    undo_blocking(inside)
            raise
    finally:
        _end(job, completion)


async def _complete(job: Job, inside: Inside, completion: Completion) -> None:
    outcome = _outcome(job, completion)
    _refuse_if_lost(job, await inside.settle(job.queue.name, outcome))
    await inside.commit()
    completion.outcome = outcome


def committed(job: Job) -> Outcome | None:
    """The outcome that the handler committed in a transaction, if it did."""
    return None if job.completion is None else job.completion.outcome


def is_completing(job: Job) -> bool:
    """True if its completion is being committed, or has been."""
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
    if job.run.phase is not None:
        raise InvalidInput("a phase cannot complete its job: use a transaction of your own, and return the result")
    if job.completion is not None:
        if job.completion.outcome is not None:
            raise InvalidMove(job.queue.name, job.id, "complete", "completed", ("active",))
        raise InvalidInput(f"the transaction of {job!r} is open already: it ends with its block")
    job.completion = completion = Completion()
    return completion


def _end(job: Job, completion: Completion) -> None:
    if completion.outcome is None:
        # Rolled back: its handler may try again.
        job.completion = None


def _outcome(job: Job, completion: Completion) -> Outcome:
    completion.is_ending = True
    return Outcome(job.id, job.token, "complete", completion.result, keep=job.keep)


def _refuse_if_told_to_stop(job: Job) -> None:
    """Refuses to commit after an interruption: a handler in a thread is not cancelled, and may have missed it."""
    if job.interruption in ("cancelled", "removed", "lost"):
        raise LockLost(job.queue.name, job.id)
    if job.interruption == "timeout":
        raise AttemptTimeout(((job.options and job.options.timeout) or 0) / 1000)


def _refuse_if_lost(job: Job, answer: Answer) -> None:
    # An earlier commit whose answer was lost completed it: this transaction must not write the same again.
    if answer.verdict != "done" or answer.state != "active":
        raise LockLost(job.queue.name, job.id)
