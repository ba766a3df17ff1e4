"""Steps of handlers in threads and processes, whose functions run where the handler runs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ..client.running import is_async
from ..errors import InvalidInput
from ..job.durations import Duration, milliseconds
from ..job.marks import STEP, Mark
from ..job.numbers import whole
from ..job.options import MOST_ATTEMPTS
from .step_marks import StepMarks, load_step, refuse_late, result_shape, step_value
from .trying import NOT_TRIED_AGAIN

T = TypeVar("T")


class StepsInPlace(ABC):
    """The part of a job in a thread or process that runs steps where its handler runs."""

    @property
    @abstractmethod
    def _steps(self) -> StepMarks: ...

    @property
    @abstractmethod
    def _result_limit(self) -> int: ...

    @abstractmethod
    def _write_step(self, mark: Mark) -> None: ...

    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        **kwargs: Any,
    ) -> T:
        """Runs a function once in effect, where the handler runs; its stored result is the answer in later attempts.

        Nothing can stop it: that it took longer than `timeout` is noticed when it has ended.
        """
        step = BlockingStep(name, function, args, kwargs, attempts, timeout)
        result: T = step.run(self._steps, self._write_step, self._result_limit)
        return result


class BlockingStep(NamedTuple):
    """A call of `job.step` without an event loop."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    attempts: int
    timeout: Duration | None

    def run(self, marks: StepMarks, write: Callable[[Mark], None], size_limit: int) -> Any:
        """Its stored result, or else that of a call, which `write` stores."""
        mark, shape = marks.use(STEP, self.name), result_shape(self.function)
        value = marks.values.get(mark)
        if value is None:
            if is_async(self.function):
                problem = f"the function of step {self.name!r} is async def, and its handler is not"
                raise InvalidInput(f"{problem}: make both the same")
            began = time.monotonic()
            result = self._try()
            value = step_value(shape, result, time.monotonic() - began, size_limit)
            write(Mark(mark, value))
        return load_step(shape, value)

    def _try(self) -> Any:
        left = whole("attempts", self.attempts, 1, MOST_ATTEMPTS)
        limit = None if self.timeout is None else milliseconds(self.timeout, "timeout") / 1000
        while True:
            left -= 1
            began = time.monotonic()
            try:
                result = self.function(*self.args, **self.kwargs)
                refuse_late(began, limit)
            except NOT_TRIED_AGAIN:
                raise
            except Exception:
                if left == 0:
                    raise
            else:
                return result
