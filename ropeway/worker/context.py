"""Separate context variables for each handler call, without creating a task for it."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import copy_context
from time import monotonic
from types import coroutine
from typing import TYPE_CHECKING, Any

from ..store import forks
from .service import end_forked_child

if TYPE_CHECKING:
    from .job import Job


class CurrentJob:
    """The job whose handler is executing on the loop right now, and since when: the suspect if the loop is blocked."""

    __slots__ = ("forks", "job", "since")

    def __init__(self) -> None:
        self.forks = forks.count
        self.job: Job | None = None
        self.since = 0.0


@coroutine
def isolated(work: Coroutine[Any, Any, Any], job: Job, current: CurrentJob) -> Generator[Any, Any, Any]:
    """Awaits `work` in the running task, but in a copy of its context.

    A slot's task runs many jobs, because a task per job would cost more than most of what Ropeway does for it. Without
    the copy, a context variable set by one job would be seen by the next.
    """
    run: Any = copy_context().run
    step: Any = work.send
    value: Any = None
    try:
        while True:
            current.since = monotonic()
            current.job = job
            waited_for = run(step, value)
            current.job = None
            try:
                value = yield waited_for
                step = work.send
            except GeneratorExit:
                run(work.close)
                raise
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the handler's to see
                value = error
                step = work.throw
    except StopIteration as done:
        return done.value
    finally:
        current.job = None
        if forks.count != current.forks:
            end_forked_child()
