"""Callbacks of retention: `on_stale` and `on_delete` of a worker run as jobs of queues for them, by companions."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, cast

from ..client.running import is_async
from ..errors import Unrecoverable
from ..job.codec import decode
from ..job.instants import moment_of
from ..job.stages import Stage, callback_queue
from ..job.states import State
from .job import Job
from .options import Rules
from .retired import RetentionCallback, RetiredJob
from .system_queues import SystemQueue
from .thread_job import SyncJob

if TYPE_CHECKING:
    from .handlers import HandlerFunction

CONCURRENCY: Final = 10
"""Callbacks of one queue and stage that a worker runs at once, beside its jobs."""


def callbacks_of(rules: Rules) -> dict[Stage, RetentionCallback]:
    given: dict[Stage, RetentionCallback | None] = {"stale": rules.on_stale, "deleted": rules.on_delete}
    return {stage: callback for stage, callback in given.items() if callback is not None}


def retention_queue(queue: str, stage: Stage, callback: RetentionCallback) -> SystemQueue:
    """The queue of one stage's callbacks."""
    return SystemQueue(
        callback_queue(queue, stage),
        CONCURRENCY,
        lambda _: Caller(callback),
        is_allowed=lambda _: True,
        serves=lambda *_: True,
        is_fed_by=lambda _: False,
    )


class Caller:
    """Calls back for each job of its queue: on the loop, or in a thread if the callback is a plain function."""

    def __init__(self, callback: RetentionCallback) -> None:
        self._callback = callback
        self.run: HandlerFunction = self._call if is_async(callback) else self._call_in_a_thread

    async def _call(self, job: Job) -> None:
        await cast(Awaitable[None], self._callback(_retired(job)))

    def _call_in_a_thread(self, job: SyncJob) -> None:
        self._callback(_retired(job))

    def close(self) -> None:
        """Has nothing to close."""


def _retired(job: Job | SyncJob) -> RetiredJob:
    origin = job.origin
    if origin is None:
        raise Unrecoverable("it says nothing about the job that it is for: nobody but Ropeway should add jobs here")
    return RetiredJob(
        origin.queue,
        origin.id,
        job.name,
        job.data,
        cast(State, origin.event),
        moment_of(origin.at),
        origin.attempts,
        None if origin.result is None else decode(origin.result),
        origin.reason or None,
    )
