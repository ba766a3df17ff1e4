"""Running an event loop by a fake clock.

asyncio takes time from two things: `loop.time()`, and its selector, in which it waits when no callback is ready. Both
are replaced on the loop object while it is controlled. The selector is called exactly when nothing is left to run, and
only then the fake clock advances: tests need neither sleep nor guess.

    loop: callbacks ready?  -- yes --> run them
          | no
          v
    select(timeout) -> Pace.idle(distance to the next timer) -> Jump(by): advance the clock, timers fire
                                                             -> Wait(seconds): wait in real time for I/O
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import RopewayError
from ..job.instants import Milliseconds
from ..worker.service import OF_WORKER

if TYPE_CHECKING:
    from .clock import FakeClock

IN_MAINTENANCE: Final[ContextVar[bool]] = ContextVar("ropeway_in_maintenance", default=False)
"""Set in a worker's maintenance services, whose pauses `drain` need not wait for."""
IN_POLL: Final[ContextVar[bool]] = ContextVar("ropeway_in_poll", default=False)
"""Set while a listener waits for a wake-up, and only looks by itself in case it was missed."""
AN_HOUR: Final = 3600.0


class Jump(NamedTuple):
    """Advance the clock by so much, at once."""

    by: Milliseconds


class Wait(NamedTuple):
    """Wait for I/O, for at most so many real seconds."""

    seconds: float


class Pace:
    """Decides what to do when nothing on the loop is left to run."""

    urgent = False
    """If true, it takes precedence over later ones."""

    def idle(self, distance: Milliseconds | None) -> Jump | Wait:
        """`distance` is the time until the next timer; None if there is none."""
        raise NotImplementedError


class RealPace(Pace):
    """Timers take their real time."""

    def idle(self, distance: Milliseconds | None) -> Wait:
        return Wait(AN_HOUR)


class FakeLoop:
    """Controls the time of one event loop.

    Afterwards the loop's time continues from where it was, so that it never runs backwards.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        selector = vars(loop).get("_selector") if isinstance(loop, asyncio.BaseEventLoop) else None
        if selector is None:
            kind = f"{type(loop).__module__}.{type(loop).__name__}"
            raise RopewayError(
                f"a fake clock needs one of asyncio's own event loops, not {kind}: run this test without it"
            )
        self.loop = loop
        self.sleeps: list[asyncio.TimerHandle] = []
        """A heap of the timers of `asyncio.sleep`, without those of maintenance services."""
        self._timers: list[asyncio.TimerHandle] = []
        """A heap of all timers but those of a worker itself, which polls its stores in any case."""
        self._unpolled: list[asyncio.TimerHandle] = []
        """A heap of all timers but those of maintenance services and of listeners."""
        self._selector: Any = selector
        self._clock: FakeClock | None = None
        self._users = 0
        self._base = 0.0
        self._waited = 0.0
        self._waited_at: Milliseconds = 0
        self._paces: list[Pace] = [RealPace()]
        self._real_time: Callable[[], float] = loop.time
        self._real_call_at: Callable[..., asyncio.TimerHandle] = loop.call_at
        self._real_select: Callable[[float | None], Any] = self._selector.select

    def begin(self, clock: FakeClock) -> None:
        if self._clock not in (None, clock):
            raise RopewayError("this event loop uses another FakeClock: give both stores the same one")
        self._users += 1
        if self._clock is None:
            self._base = self.loop.time() - clock.elapsed / 1000
            self._clock = clock
            vars(self.loop).update(time=self._time, call_at=self._call_at)
            vars(self._selector)["select"] = self._select

    def end(self) -> bool:
        """True if the loop is no longer controlled."""
        self._users -= 1
        if self._users:
            return False
        ahead = self._time() - self._real_time()
        real_time = self._real_time
        del vars(self.loop)["call_at"], vars(self._selector)["select"]
        vars(self.loop)["time"] = lambda: real_time() + ahead
        self._clock = None
        self.sleeps.clear()
        self._timers.clear()
        self._unpolled.clear()
        return True

    @contextmanager
    def paced_by(self, pace: Pace) -> Iterator[None]:
        """Sets the pace inside the block. The newest one applies, among the urgent ones if there are any."""
        self._paces.append(pace)
        try:
            yield
        finally:
            self._paces.remove(pace)

    @property
    def sleeper(self) -> asyncio.TimerHandle | None:
        """The next timer of an `asyncio.sleep` on this loop."""
        while self.sleeps and (self.sleeps[0].cancelled() or self.sleeps[0].when() <= self._time()):
            heappop(self.sleeps)
        return self.sleeps[0] if self.sleeps else None

    @property
    def next_timer(self) -> Milliseconds | None:
        """The distance to the next timer that is not a worker's own."""
        return self._distance(self._timers)

    @property
    def next_unpolled(self) -> Milliseconds | None:
        """The distance to the next timer that is no poll: of a handler, or of what runs it."""
        return self._distance(self._unpolled)

    def _distance(self, heap: list[asyncio.TimerHandle]) -> Milliseconds | None:
        while heap and (heap[0].cancelled() or heap[0].when() <= self._time()):
            heappop(heap)
        return max(1, math.ceil((heap[0].when() - self._time()) * 1000 - 1e-6)) if heap else None

    @property
    def _pace(self) -> Pace:
        return next((pace for pace in reversed(self._paces) if pace.urgent), self._paces[-1])

    def wake(self) -> None:
        """Makes the loop look at its timers, after the clock was advanced, perhaps by another thread."""
        with suppress(RuntimeError):  # A loop that was closed has no timers left.
            self.loop.call_soon_threadsafe(lambda: None)

    def _time(self) -> float:
        assert self._clock is not None
        return self._base + self._clock.elapsed / 1000

    def _call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        timer = self._real_call_at(when, callback, *args, context=context)
        # The callback of `asyncio.sleep`; timeouts and timers of libraries have others.
        if getattr(callback, "__name__", "") == "_set_result_unless_cancelled" and not IN_MAINTENANCE.get():
            heappush(self.sleeps, timer)
        if not OF_WORKER.get() and not IN_MAINTENANCE.get():
            heappush(self._timers, timer)
        if not IN_POLL.get() and not IN_MAINTENANCE.get():
            heappush(self._unpolled, timer)
        return timer

    def _select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            return self._real_select(timeout)
        events = self._real_select(0)
        if events:
            return events
        # Whole milliseconds, as in stores, or both would disagree on what is due. Less than a nanosecond is a rounding
        # error; but each step must be at least one millisecond.
        distance = None if timeout is None else max(1, math.ceil(timeout * 1000 - 1e-6))
        match self._pace.idle(distance):
            case Jump(by):
                self._move(by)
                return []
            case Wait(seconds):
                return self._wait(distance, seconds)

    def _wait(self, distance: Milliseconds | None, longest: float) -> Any:
        """Waits in real time. A timer that was waited for in real time for its whole duration fires."""
        assert self._clock is not None
        if self._waited_at != self._clock.elapsed:
            self._waited, self._waited_at = 0.0, self._clock.elapsed
        left = None if distance is None else max(0.0, distance / 1000 - self._waited)
        since = time.monotonic()
        events = self._real_select(longest if left is None else min(left, longest))
        self._waited += time.monotonic() - since
        if distance is not None and not events and self._waited >= distance / 1000:
            self._move(distance)
        return events

    def _move(self, by: Milliseconds) -> None:
        assert self._clock is not None
        if by:
            self._clock.move(by)


def fake_loop_of(loop: asyncio.AbstractEventLoop) -> FakeLoop:
    """The `FakeLoop` of an event loop, stored on it, so that both are collected together."""
    fake_loop = vars(loop).get("_ropeway_fake_loop") if hasattr(loop, "__dict__") else None
    if fake_loop is None:
        fake_loop = FakeLoop(loop)
        vars(loop)["_ropeway_fake_loop"] = fake_loop
    assert isinstance(fake_loop, FakeLoop)
    return fake_loop
