"""Listeners that park waiting claims on the server; `parked.py` says how that works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from ...errors import StoreError
from ...job.ids import new_token
from ...job.outcomes import Outcome
from ...store.commands import Claim
from ...store.listening import HearsForAll
from ...store.values import Claimed
from ...store.waiting import WaitingClaim
from .failures import reading
from .parked import ParkedClaim, Run
from .subscriber import RedisListener

Settle: TypeAlias = Callable[[str, Sequence[Outcome]], Awaitable[Any]]
Signal: TypeAlias = bytes | None
"""What ends the wait of a parked claim: a message on the listener's own channel, or None to look again."""


class ParkingListener(RedisListener):
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
        self._signals: set[asyncio.Future[Signal]] = set()
        self._going_back: set[asyncio.Task[None]] = set()
        super().__init__(subscriber, [self._own_channel, *channels], usable, url)

    async def claim(self, request: Claim) -> Claimed:
        """Claims jobs; while there are none, the claim is parked."""
        with WaitingClaim(request, self.interrupt) as waiting, reading(self._url):
            await self._hearing()
            parked = ParkedClaim(self._run, waiting, self._own_channel)
            try:
                return await self._claim_parked(waiting, parked)
            except asyncio.CancelledError:
                task = asyncio.create_task(self._give_back(request, parked), name="ropeway-redis-give-back")
                self._going_back.add(task)
                task.add_done_callback(self._going_back.discard)
                raise

    def hear(self, channel: str, message: bytes) -> None:
        if channel == self._own_channel:
            self._signal(message)
        else:
            self.wake()

    def _resolve(self, *, woken: bool) -> None:
        super()._resolve(woken=woken)
        self._signal(None)

    def _signal(self, what: Signal) -> None:
        for signal in self._signals:
            _end(signal, what)

    async def _claim_parked(self, waiting: WaitingClaim, parked: ParkedClaim) -> Claimed:
        while not waiting.is_withdrawn and self._is_open:
            # What woke it before is seen by the claim that begins now.
            self._take()
            left = waiting.left
            signal: asyncio.Future[Signal] = asyncio.get_running_loop().create_future()
            self._signals.add(signal)
            try:
                claimed = await parked.claim(left)
                if claimed.jobs or not left:
                    return claimed
                timer = signal.get_loop().call_later(waiting.pause_after(claimed), _end, signal)
                try:
                    message = await signal
                finally:
                    timer.cancel()
            finally:
                self._signals.discard(signal)
            if message is not None:
                if served := parked.read(message):
                    return served
                waiting.is_withdrawn |= parked.is_withdrawn_by(message)
        return await parked.take_back()

    async def _give_back(self, request: Claim, parked: ParkedClaim) -> None:
        """Hands back the jobs of a claim whose caller was cancelled."""
        with suppress(StoreError):
            if jobs := (await parked.take_back()).jobs:
                outcomes = [Outcome(job.id, job.token or "", "hand back") for job in jobs]
                await self._settle(request.queue, outcomes)


def _end(signal: asyncio.Future[Signal], what: Signal = None) -> None:
    if not signal.done():
        signal.set_result(what)
