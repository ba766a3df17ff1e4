"""Handlers that go on where they stopped: steps, sleeps, signals and children whose results are stored with the job."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from datetime import datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

import msgspec

from ..client.flow_plan import Plan
from ..client.flows import FlowRequest
from ..client.new_jobs import Call
from ..errors import DuplicateJob, GatherChanged, JobFinished, Postponed, SignalTimeout, StepFailed, Unrecoverable
from ..job.backoff import Backoff
from ..job.codec import Json, JsonText, decode, encode
from ..job.durations import Duration, milliseconds_left
from ..job.flows import Parent
from ..job.instants import LAST_INSTANT, Instant, due_instant_of
from ..job.marks import SIGNAL, SLEEP, STEP, WAIT, Mark, Marking, mark_name
from ..job.steps import WaitEnd
from ..store.values import JobUpdate
from .gathered import checked_calls
from .step_calls import StepCall
from .step_results import dump_failure, dump_step, load_step, read_results, result_shape
from .trying import read_limit, read_tries

if TYPE_CHECKING:
    from ..client.queue import Queue
    from ..job.record import JobRecord
    from .job_run import JobRun
    from .slots import Slot

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_in_step: ContextVar[bool] = ContextVar("in_step", default=False)
"""True in the function of a step."""
_encode: Final = msgspec.json.Encoder().encode


def noted(call: F) -> F:
    """Notes the coroutines of calls, so that an attempt can tell which were not awaited, and so never began.

    Once a call has given the slot back, no other begins, even if the handler caught the exception and goes on. None
    begins after the end of the attempt either.
    """

    @wraps(call)
    def noting(self: Durable, *args: Any, **kwargs: Any) -> Any:
        if self.ended:
            raise JobFinished(self.queue.name, self.id)
        calls = self.run.calls
        calls.refuse_after_giving_back()
        coroutine = call(self, *args, **kwargs)
        calls.note(coroutine)
        return coroutine

    return cast(F, noting)


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
        ended: bool

        @property
        def run(self) -> JobRun: ...

        async def wait_for_children(self) -> None: ...

        def discard(self) -> None: ...

    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., Awaitable[R]],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        backoff: Backoff | Duration | None = None,
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
        backoff: Backoff | Duration | None = None,
        **kwargs: Any,
    ) -> R: ...
    @noted
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        backoff: Backoff | Duration | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a function once in effect: its result is stored, and is the answer in every later attempt.

        `name` must be unique in this handler or phase; in a loop use `f"page-{n}"`. The result is JSON, or of the type
        that the function's annotation says. A `def` function runs in a thread. `attempts`, `timeout` and `backoff`
        (between its attempts) are those of the step. If the function raises `Unrecoverable`, that is stored, and
        `StepFailed` is raised now and in every later attempt.
        """
        marks = self.run.marks
        shape, mark = result_shape(name, function), marks.use(STEP, name)
        if mark in marks.values:
            return load_step(name, shape, marks.values[mark], self.record)
        tries, limit, what = read_tries(attempts, backoff), read_limit(timeout), f"step {name!r}"
        threads = None if self.slot is None else self.slot.attempts.threads
        call = StepCall(function, args, kwargs, limit, threads, self.run.watch, what)
        began = time.monotonic()
        was_in_step = _in_step.get()
        _in_step.set(True)
        marks.step_began()
        try:
            try:
                result = await call.tried(tries, self.run.try_again)
            except Unrecoverable as error:
                value, reason = dump_failure(error, time.monotonic() - began)
                await self.run.write_marks(Mark(mark, value))
                raise StepFailed(self.queue.name, self.id, name, reason) from error
            value, result = dump_step(what, shape, result, time.monotonic() - began, self.queue.size_limit)
            await self.run.write_marks(Mark(mark, value))
            return result
        finally:
            marks.step_ended()
            _in_step.set(was_in_step)

    @noted
    async def sleep(self, delay: Duration | datetime, *, name: str | None = None) -> None:
        """Gives the slot back for a time, even of days, or until an instant (with a time zone). Uses no attempt.

        The handler begins again afterwards. Sleeps are told apart by their order in the handler or phase; give them
        names if that order may change. The time that the first attempt gave counts in later ones too. A sleep until an
        instant that has passed, or of a negative duration, is over at once.
        """
        due_at = due_instant_of(delay, "delay") if isinstance(delay, datetime) else None
        length = 0 if isinstance(delay, datetime) else milliseconds_left(delay, "delay")
        marks = self.run.marks
        mark = marks.next_sleep() if name is None else marks.use(SLEEP, name)
        known = marks.until_of(mark)
        if known is not None and known <= (self.record.renewed_at or 0):
            # It was over when this attempt was claimed.
            return
        now = await self._clock()
        until = await self._wait_until(mark, now + length if due_at is None else due_at)
        if until > now and await self._wait_for_other_steps():
            now = await self._clock()
        if until > now:
            await self._give_back(Postponed(until - now))

    @noted
    async def wait_for(self, name: str, *, timeout: Duration | None = None) -> Json:
        """Waits for a signal, `await queue.signal(id, name, data)`, and answers its data.

        Gives the slot back meanwhile. Raises `SignalTimeout` after `timeout`, which begins with the first wait. A
        signal that came before is answered at once. How the wait ended is stored, and is the same in every later
        attempt.
        """
        marks = self.run.marks
        signal, wait = SIGNAL + mark_name(name, SIGNAL), marks.use(WAIT, name)
        end = marks.end_of_wait(wait)
        if end is None:
            found = marks.values.get(signal)
            if found is None:
                # A signal may come in the last moment, after this attempt was claimed.
                await self._await_signal(signal, wait, timeout)
                found = await self._late_signal(signal)
            began = next((mark.at for mark in self.record.marks if mark.name == wait), None)
            end = WaitEnd(is_late=True, began=began) if found is None else WaitEnd(decode(found), began=began)
            await self.run.write_marks(Mark(wait, _encode(end).decode()))
        if end.is_late:
            raise SignalTimeout(self.queue.name, self.id, name, marks.unanswered_signals())
        return end.data

    async def _await_signal(self, signal: str, wait: str, timeout: Duration | None) -> None:
        """Gives the job back until there is a signal; returns if the timeout has passed."""
        now, until = 0, LAST_INSTANT
        if timeout is not None:
            length = milliseconds_left(timeout, "timeout")
            now = await self._clock()
            until = await self._wait_until(wait, now + length)
        if until > now and await self._wait_for_other_steps() and timeout is not None:
            now = await self._clock()
        if until <= now:
            return
        if timeout is None:
            self.run.write_with_outcome(Mark(wait, str(until)))
        await self._give_back(Postponed(until - now, awaits=signal))

    @overload
    async def gather(self, *calls: Call[R]) -> list[R]: ...
    @overload
    async def gather(self, *calls: FlowRequest) -> list[Any]: ...
    @noted
    async def gather(self, *calls: Any) -> list[Any]:
        """Adds jobs as children, gives the slot back until all have ended, and answers their results in order.

        If one fails, this job fails with it, unless its `Flow` has `on_failure="ignore"`; then its result is None.
        """
        calls = checked_calls(calls)
        marks = self.run.marks
        mark = marks.next_gather()
        if mark not in marks.values:
            await self._add_gathered(mark, calls)
        ids = msgspec.json.decode(marks.values[mark], type=list[tuple[str, str]])
        if len(ids) != len(calls):
            self.discard()
            raise GatherChanged(self.queue.name, self.id, len(ids), len(calls))
        await self.wait_for_children()
        return read_results(calls, await self._results_of(ids))

    async def _wait_for_other_steps(self) -> bool:
        """Waits for steps beside the caller, whose results would be lost with this attempt. True if there were any."""
        # A step whose own function gives the job back would wait for itself.
        return not _in_step.get() and await self.run.marks.wait_for_steps()

    async def _give_back(self, postponed: Postponed) -> None:
        self.run.calls.give_back(postponed)

    async def _wait_until(self, mark: str, first: Instant) -> Instant:
        """The end of a wait: what the first attempt that came to it has stored."""
        until = self.run.marks.until_of(mark)
        if until is None:
            until = min(first, LAST_INSTANT)
            await self.run.write_marks(Mark(mark, str(until)))
        return until

    async def _clock(self) -> Instant:
        return await self.run.read("clock", self.queue.store.clock)

    async def _late_signal(self, signal: str) -> JsonText | None:
        [record] = await self.run.read("get", lambda: self.queue.store.get(self.queue.name, [self.id]))
        return next((mark.value for mark in record.marks if mark.name == signal), None) if record else None

    async def _add_gathered(self, mark: str, calls: Iterable[FlowRequest]) -> None:
        """Adds the children and notes their ids in one step, so that no attempt adds them twice."""
        plan = Plan(self.queue, calls)
        links = plan.links(None)
        plan.adopt(Parent(self.queue.name, self.id))
        noted = Mark(mark, encode([[child.queue, child.id] for child in links], "children", self.queue.size_limit))
        change = JobUpdate(self.id, self.token, children=links, adds=tuple(plan.bundle), marking=Marking((noted,)))
        if (await self.run.update_with_marks(change, (noted,))).verdict == "refused":
            raise DuplicateJob(links[0].queue, ", ".join(child.id for child in links[:10]), is_child=True)

    async def _results_of(self, ids: list[tuple[str, str]]) -> list[Json]:
        results: dict[tuple[str, str], Json] = {}
        after = None
        while True:
            page = await self.run.read("children", partial(self.queue.children, self.id, after=after))
            results |= {
                (child.queue, child.id): None if child.result is None else decode(child.result)
                for child in page.children
            }
            after = page.next
            if after is None:
                return [results.get(child) for child in ids]
