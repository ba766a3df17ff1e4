"""Listeners that leave claims with the server."""

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
from .standing import Run, Standing
from .wake import RedisListener

LONGEST: Final = 5.0
"""Seconds for which a claim stands, if nobody says less: a worker that froze must not be given jobs for long."""

Settle: TypeAlias = Callable[[str, Sequence[Outcome]], Awaitable[Any]]
Said: TypeAlias = bytes | bool
"""What ends the wait of a claim: a message to it, a wake (True), or that it shall end (False)."""


class ClaimingListener(RedisListener):
    """Hears wakes of one queue, and has a channel of its own for what its claims are given."""

    def __init__(
        self,
        ear: Callable[[], HearsForAll],
        channels: Sequence[str],
        usable: Callable[[], None],
        url: str,
        run: Run,
        settle: Settle,
    ) -> None:
        self._own_channel = f"{channels[0]}:{new_token()}"
        self._run = run
        self._settle = settle
        self._claims: set[asyncio.Future[Said]] = set()
        self._going_back: set[asyncio.Task[None]] = set()
        super().__init__(ear, [self._own_channel, *channels], usable, url)

    async def claim(self, request: Claim, timeout: float | None = None) -> Served | None:
        interrupts = self._interrupts
        await self._hearing()
        # What woke it before is seen by the claim that begins now.
        self._take()
        if interrupts != self._interrupts:
            return None
        standing = Standing(self._run, request, self._own_channel)
        said: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        self._claims.add(said)
        try:
            with reading(self._url):
                return await self._stand(standing, said, LONGEST if timeout is None else timeout)
        except asyncio.CancelledError:
            task = asyncio.create_task(self._give_back(standing), name="ropeway-redis-give-back")
            self._going_back.add(task)
            task.add_done_callback(self._going_back.discard)
            raise
        finally:
            self._claims.discard(said)

    def hear(self, channel: str, message: bytes) -> None:
        if channel == self._own_channel:
            self._say(message)
        else:
            self.wake()

    def _resolve(self, *, woken: bool) -> None:
        super()._resolve(woken=woken)
        self._say(woken and self._is_open)

    def _say(self, what: Said) -> None:
        for claim in self._claims:
            _end(claim, what)

    async def _stand(self, standing: Standing, said: asyncio.Future[Said], seconds: float) -> Served | None:
        try:
            if served := await standing.leave(seconds):
                return served
            timer = said.get_loop().call_later(seconds, _end, said)
            try:
                what = await said
            finally:
                timer.cancel()
            if what is True:
                self._take()
                return await standing.claim()
            return (isinstance(what, bytes) and standing.read(what)) or await standing.withdraw()
        except StoreUnavailable:
            return await self._insist(standing)

    async def _insist(self, standing: Standing) -> Served | None:
        """Whether the server gave anything is unknown: asks until it says so, or the locks have ended by themselves."""
        end = time.monotonic() + standing.request.lock / 1000
        while self._is_open and time.monotonic() < end:
            await asyncio.sleep(LONGEST_PAUSE)
            with suppress(StoreUnavailable):
                return await standing.withdraw()
        return None

    async def _give_back(self, standing: Standing) -> None:
        """For a claim whose caller is gone."""
        with suppress(StoreError):
            if served := await standing.withdraw():
                jobs = served.claimed.jobs
                outcomes = [Outcome(job.id, job.token or "", "hand back") for job in jobs]
                await self._settle(standing.request.queue, outcomes)


def _end(claim: asyncio.Future[Said], what: Said = False) -> None:
    if not claim.done():
        claim.set_result(what)
