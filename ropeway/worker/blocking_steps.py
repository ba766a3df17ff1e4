"""Steps of handlers in threads and processes, whose functions run where the handler runs."""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ..client.running import is_async
from ..errors import InvalidInput, StepFailed, Unrecoverable
from ..job.backoff import Backoff
from ..job.durations import Duration
from ..job.marks import STEP, Mark
from ..job.record import JobRecord
from .attempt_marks import AttemptMarks
from .step_results import dump_failure, dump_step, load_step, result_shape
from .trying import Tries, read_limit, read_tries, refuse_late

T = TypeVar("T")


class StepsInPlace(ABC):
    """The part of a job in a thread or process that runs steps where its handler runs."""

    record: JobRecord

    @property
    @abstractmethod
    def _steps(self) -> AttemptMarks: ...

    @abstractmethod
    def _refuse_after_giving_back(self) -> None: ...

    @property
    @abstractmethod
    def _result_limit(self) -> int: ...

    @abstractmethod
    def _write_step(self, mark: Mark) -> None: ...

    @abstractmethod
    def _try_again(self, what: str, error: Exception, pause: float | None) -> bool: ...

    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        backoff: Backoff | Duration | None = None,
        **kwargs: Any,
    ) -> T:
        """Runs a function once in effect, where the handler runs; its stored result is the answer in later attempts.

        Nothing can stop it: that it took longer than `timeout` is noticed when it has ended.
        """
        result: T
        self._refuse_after_giving_back()
        marks = self._steps
        shape, mark = result_shape(name, function), marks.use(STEP, name)
        stored = marks.values.get(mark)
        if stored is not None:
            result = load_step(name, shape, stored, self.record)
            return result
        if is_async(function):
            raise _async_step(name)
        tries, limit, what = read_tries(attempts, backoff), read_limit(timeout), f"step {name!r}"
        began = time.monotonic()
        try:
            given = self._try(partial(function, *args, **kwargs), tries, limit, what)
        except Unrecoverable as error:
            value, reason = dump_failure(error, time.monotonic() - began)
            self._write_step(Mark(mark, value))
            raise StepFailed(self.record.queue, self.record.id, name, reason) from error
        if inspect.isawaitable(given):
            if inspect.iscoroutine(given):
                given.close()
            raise _async_step(name)
        value, result = dump_step(what, shape, given, time.monotonic() - began, self._result_limit)
        self._write_step(Mark(mark, value))
        return result

    def _try(self, call: Callable[[], Any], tries: Tries, limit: float | None, what: str) -> Any:
        failed = 0
        while True:
            began = time.monotonic()
            try:
                result = call()
                refuse_late(began, limit, what)
            except Exception as error:
                failed += 1
                if not self._try_again(what, error, tries.pause_after(failed)):
                    raise
            else:
                return result


def _async_step(name: str) -> InvalidInput:
    problem = f"the function of step {name!r} is async def, and its handler is not"
    return InvalidInput(f"{problem}: make both the same")
