"""An event loop that lives by a fake clock.

asyncio asks two things for time: `loop.time()`, and its selector, in which it waits when nothing is left to run. Both
are replaced on the one loop object while it is governed. The selector is also where one can see that nothing is left
to run, so that tests need neither sleep nor guess: time moves only then.
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

if TYPE_CHECKING:
    from .clock import FakeClock

AT_SERVICE: Final[ContextVar[bool]] = ContextVar("ropeway_at_service", default=False)
"""Set in a worker's services, whose pauses nobody waits for."""
AN_HOUR: Final = 3600.0


class Jump(NamedTuple):
    """Time moves on by so much, at once."""

    by: Milliseconds


class Wait(NamedTuple):
    """Something outside may happen: so many real seconds are given to it."""

    seconds: float


class Pace:
    """Decides what happens when nothing on the loop is left to run."""

    urgent = False
    """Whether it goes before others that came later."""

    def idle(self, distance: Milliseconds | None) -> Jump | Wait:
        """`distance` is how far away the next timer is; None if there is none."""
        raise NotImplementedError


class RealPace(Pace):
    """A timer takes as long as it says."""

    def idle(self, distance: Milliseconds | None) -> Wait:
        return Wait(AN_HOUR)


class Governor:
    """One loop, and the clock that it lives by at the moment.

    When it is no longer governed its time goes on from where it was, so that no timer is thrown back.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        selector = vars(loop).get("_selector") if isinstance(loop, asyncio.BaseEventLoop) else None
        if selector is None:
            kind = f"{type(loop).__module__}.{type(loop).__name__}"
            raise RopewayError(f"a fake clock governs asyncio's own event loops, not {kind}: run this test without it")
        self.loop = loop
        self.sleeps: list[asyncio.TimerHandle] = []
        """The timers of `asyncio.sleep`, the services' own left out; the first to end is the first."""
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
            raise RopewayError("this event loop lives by another FakeClock: give both stores the same one")
        self._users += 1
        if self._clock is None:
            self._base = self.loop.time() - clock.elapsed / 1000
            self._clock = clock
            vars(self.loop).update(time=self._time, call_at=self._call_at)
            vars(self._selector)["select"] = self._select

    def end(self) -> bool:
        """Whether it is governed no longer."""
        self._users -= 1
        if self._users:
            return False
        ahead = self._time() - self._real_time()
        real_time = self._real_time
        del vars(self.loop)["call_at"], vars(self._selector)["select"]
        vars(self.loop)["time"] = lambda: real_time() + ahead
        self._clock = None
        self.sleeps.clear()
        return True

    @contextmanager
    def paced_by(self, pace: Pace) -> Iterator[None]:
        """The newest pace counts, of the urgent ones if there are any."""
        self._paces.append(pace)
        try:
            yield
        finally:
            self._paces.remove(pace)

    @property
    def sleeper(self) -> asyncio.TimerHandle | None:
        """The first of those who sleep on this loop."""
        while self.sleeps and (self.sleeps[0].cancelled() or self.sleeps[0].when() <= self._time()):
            heappop(self.sleeps)
        return self.sleeps[0] if self.sleeps else None

    @property
    def _pace(self) -> Pace:
        return next((pace for pace in reversed(self._paces) if pace.urgent), self._paces[-1])

    def wake(self) -> None:
        """Time has moved, perhaps in another thread."""
        with suppress(RuntimeError):  # A loop that was closed has no timers left.
            self.loop.call_soon_threadsafe(lambda: None)

    def _time(self) -> float:
        assert self._clock is not None
        return self._base + self._clock.elapsed / 1000

    def _call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        timer = self._real_call_at(when, callback, *args, context=context)
        # What `asyncio.sleep` calls; timeouts and the timers of libraries call something else.
        if getattr(callback, "__name__", "") == "_set_result_unless_cancelled" and not AT_SERVICE.get():
            heappush(self.sleeps, timer)
        return timer

    def _select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            return self._real_select(timeout)
        events = self._real_select(0)
        if events:
            return events
        # Whole milliseconds, as in stores, or both would disagree on what is due. Less than a nanosecond is an error of
        # floats; but each step must be one.
        distance = None if timeout is None else max(1, math.ceil(timeout * 1000 - 1e-6))
        match self._pace.idle(distance):
            case Jump(by):
                self._move(by)
                return []
            case Wait(seconds):
                return self._wait(distance, seconds)

    def _wait(self, distance: Milliseconds | None, longest: float) -> Any:
        """Waits in the real world. What waited for a timer in vain, as long as the timer says, has waited enough."""
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


def governor_of(loop: asyncio.AbstractEventLoop) -> Governor:
    """Each loop has one, and keeps it: both go at the same time."""
    governor = vars(loop).get("_ropeway_governor") if hasattr(loop, "__dict__") else None
    if governor is None:
        governor = Governor(loop)
        vars(loop)["_ropeway_governor"] = governor
    assert isinstance(governor, Governor)
    return governor
