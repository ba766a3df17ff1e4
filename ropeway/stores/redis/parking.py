"""Listeners that park claims on the server; `parked.py` says how that works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from ...errors import StoreError, StoreUnavailable
from ...job.ids import new_token
from ...job.outcomes import Outcome
from ...store.commands import Claim
from ...store.listening import HearsForAll
from ...store.values import Served
from .connection import LONGEST_PAUSE
from .failures import reading
from .parked import ParkedClaim, Run
from .subscriber import RedisListener

LONGEST: Final = 5.0
"""Seconds for which a claim is parked by default: a worker that froze must not be given jobs for long."""

Settle: TypeAlias = Callable[[str, Sequence[Outcome]], Awaitable[Any]]
Signal: TypeAlias = bytes | bool
"""What ends the wait of a parked claim: a message for it, a wake (True), or its end (False)."""


class ClaimingListener(RedisListener):
    """Listens to wakes of one queue, and has a private channel for jobs that its parked claims are given."""

    def __init__(
        self,
        subscriber: Callable[[], HearsForAll],
        channels: Sequence[str],
        usable: Callable[[], None],
        url: str,
        run: Run,
        settle: Settle,
    ) -> None:
        self._own_channel = f"{channels[0]}:{new_token()}"
        self._run = run
        self._settle = settle
        self._claims: set[asyncio.Future[Signal]] = set()
        self._going_back: set[asyncio.Task[None]] = set()
        super().__init__(subscriber, [self._own_channel, *channels], usable, url)

    async def claim(self, request: Claim, timeout: float | None = None) -> Served | None:
        interrupts = self._interrupts
        await self._hearing()
        # What woke it before is seen by the claim that begins now.
        self._take()
        if interrupts != self._interrupts:
            return None
        parked = ParkedClaim(self._run, request, self._own_channel)
        signal: asyncio.Future[Signal] = asyncio.get_running_loop().create_future()
        self._claims.add(signal)
        try:
            with reading(self._url):
                return await self._wait_parked(parked, signal, LONGEST if timeout is None else timeout)
        except asyncio.CancelledError:
            task = asyncio.create_task(self._give_back(parked), name="ropeway-redis-give-back")
            self._going_back.add(task)
            task.add_done_callback(self._going_back.discard)
            raise
        finally:
            self._claims.discard(signal)

    def hear(self, channel: str, message: bytes) -> None:
        if channel == self._own_channel:
            self._signal(message)
        else:
            self.wake()

    def _resolve(self, *, woken: bool) -> None:
        super()._resolve(woken=woken)
        self._signal(woken and self._is_open)

    def _signal(self, what: Signal) -> None:
        for claim in self._claims:
            _end(claim, what)

    async def _wait_parked(self, parked: ParkedClaim, signal: asyncio.Future[Signal], seconds: float) -> Served | None:
        try:
            if served := await parked.park(seconds):
                return served
            timer = signal.get_loop().call_later(seconds, _end, signal)
            try:
                what = await signal
            finally:
                timer.cancel()
            if what is True:
                self._take()
                return await parked.claim_now()
            return (isinstance(what, bytes) and parked.read(what)) or await parked.take_back()
        except StoreUnavailable:
            return await self._recover(parked)

    async def _recover(self, parked: ParkedClaim) -> Served | None:
        """Asks the server what the claim was given, until it answers or the locks of such jobs have expired."""
        end = time.monotonic() + parked.request.lock / 1000
        while self._is_open and time.monotonic() < end:
            await asyncio.sleep(LONGEST_PAUSE)
            with suppress(StoreUnavailable):
                return await parked.take_back()
        return None

    async def _give_back(self, parked: ParkedClaim) -> None:
        """Hands back the jobs of a claim whose caller was cancelled."""
        with suppress(StoreError):
            if served := await parked.take_back():
                jobs = served.claimed.jobs
                outcomes = [Outcome(job.id, job.token or "", "hand back") for job in jobs]
                await self._settle(parked.request.queue, outcomes)


def _end(claim: asyncio.Future[Signal], what: Signal = False) -> None:
    if not claim.done():
        claim.set_result(what)
