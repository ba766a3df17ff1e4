"""A clock that tests advance manually."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import RLock
from typing import Protocol
from weakref import WeakSet

from ..client.portal import refuse_on_a_loop
from ..job.durations import Duration, milliseconds
from ..job.instants import Instant, Milliseconds, instant_of, moment_of
from .fake_loop import FakeLoop, Jump, Pace, fake_loop_of


class OnClock(Protocol):
    """A store that lives by the clock."""

    def next_instant(self) -> Instant | None: ...

    def next_tick_at(self) -> Instant | None: ...


class FakeClock:
    """A clock that stands still until it is advanced.

    It is the clock of a `FakeStore`, and of the event loop while a worker runs on such a store. Delays, backoff, locks,
    timeouts and `asyncio.sleep` all use it there. If the test does not advance it, a wait takes its real time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._start = instant_of(datetime.now(UTC) if start is None else start)
        self._elapsed: Milliseconds = 0
        self._lock = RLock()
        self._loops: list[FakeLoop] = []
        self._stores: WeakSet[OnClock] = WeakSet()

    def __repr__(self) -> str:
        return f"<FakeClock {self.now().isoformat()}>"

    def now(self) -> datetime:
        """The current time in UTC, in whole milliseconds."""
        return moment_of(self.instant)

    @property
    def instant(self) -> Instant:
        """The current time in milliseconds since 1970, as stores use it."""
        return self._start + self._elapsed

    @property
    def elapsed(self) -> Milliseconds:
        return self._elapsed

    def follow(self, store: OnClock) -> None:
        """Takes what comes next in a store into account when the clock is advanced."""
        self._stores.add(store)

    @property
    def next_instant(self) -> Instant | None:
        """When something happens in one of its stores by itself: the past if a job runs, None if nothing will."""
        return min((at for store in self._stores if (at := store.next_instant()) is not None), default=None)

    async def advance(self, by: Duration = 0) -> None:
        """Advances the clock: timers fire in order, and the code waiting for one runs before the next fires.

        When it returns, everything due by then has happened on this event loop; threads and processes are not waited
        for. Advancing by 0 runs what is due now.
        """
        with self.controlling_loop() as fake_loop:
            advance = Advance(self, fake_loop, milliseconds(by, "by"))
            with fake_loop.paced_by(advance):
                await advance.done

    def advance_sync(self, by: Duration = 0) -> None:
        """`advance` for tests without an event loop, also while a worker runs in another thread."""
        refuse_on_a_loop("await clock.advance(...)")
        with self._lock:
            loop = self._loops[0].loop if self._loops else None
        if loop is None:
            self.move(milliseconds(by, "by"))
        else:
            asyncio.run_coroutine_threadsafe(self.advance(by), loop).result()

    def move(self, by: Milliseconds) -> None:
        """Sets the clock forward in one step, so that all timers in between fire together. Tests use `advance`."""
        with self._lock:
            self._elapsed += by
            for fake_loop in self._loops:
                fake_loop.wake()

    @contextmanager
    def controlling_loop(self) -> Iterator[FakeLoop]:
        """Inside the block the running event loop uses this clock."""
        fake_loop = fake_loop_of(asyncio.get_running_loop())
        with self._lock:
            fake_loop.begin(self)
            if fake_loop not in self._loops:
                self._loops.append(fake_loop)
        try:
            yield fake_loop
        finally:
            with self._lock:
                if fake_loop.end():
                    self._loops.remove(fake_loop)


class Advance(Pace):
    """Jumps from timer to timer, up to an instant.

    While no job runs, the polls of workers are passed over: the next jump leads to what comes next in a store, or to a
    timer of the test.
    """

    urgent = True

    def __init__(self, clock: FakeClock, fake_loop: FakeLoop, by: Milliseconds) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock = clock
        self._fake_loop = fake_loop
        self._until = clock.elapsed + by

    def idle(self, distance: Milliseconds | None) -> Jump:
        left = self._until - self._clock.elapsed
        if distance is not None and distance <= left:
            return Jump(max(distance, min(left, self._quiet_for())))
        if left <= 0 and not self.done.done():
            self.done.set_result(None)
        return Jump(max(0, left))

    def _quiet_for(self) -> Milliseconds:
        """For how long neither a store nor a timer of the test needs the clock."""
        at = self._clock.next_instant
        distances = [self._until if at is None else at - self._clock.instant, self._fake_loop.next_timer]
        return min(distance for distance in distances if distance is not None)
