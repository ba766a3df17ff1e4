"""Time that passes when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import RLock

from ..client.portal import refuse_on_a_loop
from ..job.durations import Duration, milliseconds
from ..job.instants import Instant, Milliseconds, instant_of, moment_of
from .governor import Governor, Jump, Pace, governor_of


class FakeClock:
    """A clock that stands still until it is advanced.

    It is the clock of a `FakeStore`, and of the event loop while a worker runs on such a store. Whatever waits there
    for time to pass (delays, backoff, locks, timeouts, `asyncio.sleep`) waits for this clock. If nobody advances it,
    such a wait takes as long as it would without it.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._start = instant_of(datetime.now(UTC) if start is None else start)
        self._elapsed: Milliseconds = 0
        self._lock = RLock()
        self._governors: list[Governor] = []

    def __repr__(self) -> str:
        return f"<FakeClock {self.now().isoformat()}>"

    def now(self) -> datetime:
        """In UTC, to the millisecond."""
        moment = moment_of(self.instant)
        assert moment is not None
        return moment

    @property
    def instant(self) -> Instant:
        """The same in milliseconds since 1970, as stores write it."""
        return self._start + self._elapsed

    @property
    def elapsed(self) -> Milliseconds:
        return self._elapsed

    async def advance(self, by: Duration = 0) -> None:
        """Lets time pass: timers end in their order, and whoever waited for each runs before the next ends.

        When it returns, all that was to happen by then has happened, as far as it happens on this event loop; what a
        thread or a process does meanwhile is not waited for. Advancing by 0 does what is due now.
        """
        with self.governing() as governor:
            advance = Advance(self, milliseconds(by, "by"))
            with governor.paced_by(advance):
                await advance.done

    def advance_sync(self, by: Duration = 0) -> None:
        """The same for tests without an event loop, also while a worker runs in another thread."""
        refuse_on_a_loop("await clock.advance(...)")
        with self._lock:
            loop = self._governors[0].loop if self._governors else None
        if loop is None:
            self.move(milliseconds(by, "by"))
        else:
            asyncio.run_coroutine_threadsafe(self.advance(by), loop).result()

    def move(self, by: Milliseconds) -> None:
        """Sets the clock forward at once: what is due then is due together. Tests advance instead."""
        with self._lock:
            self._elapsed += by
            for governor in self._governors:
                governor.wake()

    @contextmanager
    def governing(self) -> Iterator[Governor]:
        """Inside the block the running event loop lives by this clock."""
        governor = governor_of(asyncio.get_running_loop())
        with self._lock:
            governor.begin(self)
            if governor not in self._governors:
                self._governors.append(governor)
        try:
            yield governor
        finally:
            with self._lock:
                if governor.end():
                    self._governors.remove(governor)


class Advance(Pace):
    """Goes from timer to timer, up to an instant."""

    urgent = True

    def __init__(self, clock: FakeClock, by: Milliseconds) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock = clock
        self._until = clock.elapsed + by

    def idle(self, distance: Milliseconds | None) -> Jump:
        left = self._until - self._clock.elapsed
        if distance is not None and distance <= left:
            return Jump(distance)
        if left <= 0 and not self.done.done():
            self.done.set_result(None)
        return Jump(max(0, left))
