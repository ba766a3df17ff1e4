"""Handlers that go on where they stopped: steps, sleeps, signals and children whose results are stored with the job."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import msgspec

from ..client.flow_plan import Plan
from ..client.flows import FlowRequest
from ..client.new_jobs import Call
from ..client.running import is_async
from ..errors import DuplicateJob, GatherChanged, Postponed, SignalTimeout
from ..job.codec import Json, JsonText, decode, encode
from ..job.durations import Duration, milliseconds
from ..job.flows import Parent
from ..job.instants import LAST_INSTANT, Instant, Milliseconds
from ..job.marks import SIGNAL, SLEEP, STEP, WAIT, Mark, Marking, mark_name
from ..job.numbers import whole
from ..job.options import MOST_ATTEMPTS
from ..store.values import Answer, JobUpdate
from .step_marks import StepMarks, load_step, refuse_late, result_shape, step_value, until_of
from .trying import NOT_TRIED_AGAIN, within

if TYPE_CHECKING:
    from ..client.queue import Queue
    from ..job.record import JobRecord
    from .slots import Slot
    from .threads import Threads

R = TypeVar("R")


class Durable:
    """The part of `Job` whose calls remember, across attempts, workers and restarts, what they answered.

    The handler begins again after a failure, a crash, a sleep or a wait; these calls then answer at once.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        queue: Queue
        id: str
        token: str
        record: JobRecord
        slot: Slot | None

        @property
        def _known_marks(self) -> StepMarks: ...

        async def _update(self, change: JobUpdate) -> Answer: ...

        async def wait_for_children(self) -> None: ...

        def discard(self) -> None: ...

        def _mark_when_given_back(self, mark: Mark) -> None: ...

    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., Awaitable[R]],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        **kwargs: Any,
    ) -> R: ...
    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., R],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        **kwargs: Any,
    ) -> R: ...
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a function once in effect: its result is stored, and is the answer in every later attempt.

        `name` is its own in this handler; in a loop use `f"page-{n}"`. The result is JSON, or of the type that the
        function's annotation says. A `def` function runs in a thread. `attempts` and `timeout` are those of the step.
        """
        marks = self._known_marks
        mark, shape = marks.use(STEP, name), result_shape(function)
        if mark in marks.values:
            return load_step(shape, marks.values[mark])
        tries = whole("attempts", attempts, 1, MOST_ATTEMPTS)
        limit = None if timeout is None else milliseconds(timeout, "timeout") / 1000
        began = time.monotonic()
        threads = None if self.slot is None else self.slot.threads
        result = await _try(Called(function, args, kwargs, limit, threads), tries)
        value = step_value(shape, result, time.monotonic() - began, self.queue.size_limit)
        await self._write_marks(Mark(mark, value))
        return load_step(shape, value)

    async def sleep(self, duration: Duration, *, name: str | None = None) -> None:
        """Gives the slot back for a time, even of days; the handler begins again afterwards. Uses no attempt.

        Sleeps are told apart by their order in the handler or phase, or by `name` if that order changes.
        """
        length = milliseconds(duration, "duration")
        marks = self._known_marks
        mark = marks.next_sleep() if name is None else marks.use(SLEEP, name)
        known = until_of(marks, mark)
        if known is not None and known <= (self.record.renewed_at or 0):
            # It was over when this attempt was claimed.
            return
        now = await self.queue.store.clock()
        until = await self._wait_until(mark, now, length)
        if until > now:
            await self._give_back(Postponed(until - now))

    async def wait_for(self, name: str, *, timeout: Duration | None = None) -> Json:
        """Waits for a signal, `await queue.signal(id, name, data)`, and answers its data.

        Gives the slot back meanwhile. Raises `SignalTimeout` after `timeout`, which begins with the first wait. A
        signal that came first is answered at once, and the same one in every later attempt.
        """
        marks = self._known_marks
        signal, wait = SIGNAL + mark_name(name, SIGNAL), marks.use(WAIT, name)
        if signal in marks.values:
            return marks.read(signal)
        now, until = 0, LAST_INSTANT
        if timeout is not None:
            length = milliseconds(timeout, "timeout")
            now = await self.queue.store.clock()
            until = await self._wait_until(wait, now, length)
        if until <= now:
            # A signal may have come in the last moment, after this attempt was claimed.
            found = await self._late_signal(signal)
            if found is None:
                raise SignalTimeout(self.queue.name, self.id, name)
            return decode(found)
        if timeout is None:
            self._mark_when_given_back(Mark(wait, str(until)))
        await self._give_back(Postponed(until - now, awaits=signal))
        raise AssertionError("the job was given back")

    @overload
    async def gather(self, *calls: Call[R]) -> list[R]: ...
    @overload
    async def gather(self, *calls: FlowRequest) -> list[Any]: ...
    async def gather(self, *calls: Any) -> list[Any]:
        """Adds jobs as children, gives the slot back until all have ended, and answers their results in order.

        If one fails, this job fails with it, unless its `on_child_failure` says otherwise; then its result is None.
        """
        marks = self._known_marks
        mark = marks.next_gather()
        if mark not in marks.values:
            await self._add_gathered(mark, calls)
        ids = msgspec.json.decode(marks.values[mark], type=list[tuple[str, str]])
        if len(ids) != len(calls):
            self.discard()
            raise GatherChanged(self.queue.name, self.id, len(ids), len(calls))
        await self.wait_for_children()
        results = await self._results_of(ids)
        return [
            call.read_result(result) if isinstance(call, Call) and call.read_result is not None else result
            for call, result in zip(calls, results, strict=True)
        ]

    async def _write_marks(self, *marks: Mark) -> None:
        """Stores results of steps. Applications call `step`."""
        known = self._known_marks
        await self._update(JobUpdate(self.id, self.token, marking=Marking(known.checked(*marks))))
        known.written(*marks)

    async def _give_back(self, postponed: Postponed) -> None:
        """Leaves the handler by the exception; the worker gives the job back."""
        raise postponed

    async def _wait_until(self, mark: str, now: Instant, length: Milliseconds) -> Instant:
        until = until_of(self._known_marks, mark)
        if until is None:
            until = min(now + length, LAST_INSTANT)
            await self._write_marks(Mark(mark, str(until)))
        return until

    async def _late_signal(self, signal: str) -> JsonText | None:
        [record] = await self.queue.store.get(self.queue.name, [self.id])
        return next((mark.value for mark in record.marks if mark.name == signal), None) if record else None

    async def _add_gathered(self, mark: str, calls: Iterable[FlowRequest]) -> None:
        """Adds the children and notes their ids in one step, so that no attempt adds them twice."""
        plan = Plan(self.queue, calls)
        links = plan.links(None)
        plan.adopt(Parent(self.queue.name, self.id))
        noted = Mark(mark, encode([[child.queue, child.id] for child in links], "children", self.queue.size_limit))
        marking = Marking(self._known_marks.checked(noted))
        change = JobUpdate(self.id, self.token, children=links, adds=tuple(plan.bundle), marking=marking)
        if (await self._update(change)).verdict == "refused":
            raise DuplicateJob(links[0].queue, ", ".join(child.id for child in links[:10]), is_child=True)
        self._known_marks.written(noted)

    async def _results_of(self, ids: list[tuple[str, str]]) -> list[Json]:
        results: dict[tuple[str, str], Json] = {}
        after = None
        while True:
            page = await self.queue.children(self.id, after=after)
            results |= {
                (child.queue, child.id): None if child.result is None else decode(child.result)
                for child in page.children
            }
            after = page.next
            if after is None:
                return [results.get(child) for child in ids]


class Called(NamedTuple):
    """A call of a step's function."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    limit: float | None
    """Seconds."""
    threads: Threads | None
    """Those of the worker; None for a job that is processed by hand."""

    async def run(self) -> Any:
        if is_async(self.function):
            return await within(self.limit, self.function(*self.args, **self.kwargs))
        # Nothing can stop a thread: a timeout is noticed when it has ended, so that no second one runs beside it.
        began = time.monotonic()
        result = await self._in_thread()
        if inspect.isawaitable(result):
            return await within(self.limit, result)
        refuse_late(began, self.limit)
        return result

    async def _in_thread(self) -> Any:
        if self.threads is None:
            return await asyncio.to_thread(self.function, *self.args, **self.kwargs)
        await self.threads.engage()
        return await self.threads.run(lambda _: self.function(*self.args, **self.kwargs), None)


async def _try(call: Called, attempts: int) -> Any:
    while True:
        attempts -= 1
        try:
            return await call.run()
        except NOT_TRIED_AGAIN:
            raise
        except Exception:
            if attempts == 0:
                raise
