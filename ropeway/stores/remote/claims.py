"""Waiting claims: the server holds them, by long polls in a row, until there are jobs.

If the server knows a listener of the worker, the claim waits there by it, and does not look for jobs first. So a claim
that does not wait is sent first, or in between, when that listener was woken here: the wake-up was used up by a poll.
If that look finds only delayed jobs, the server's next hold does not know of them, and must end when the first is due:

    hold ──> woken here ──> withdraw, look ──> none, again in 50 ms ──> hold for 50 ms, whose end is a look
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from ...errors import RopewayError
from ...job.outcomes import Outcome
from ...store.commands import Claim, Settle, Withdraw
from ...store.values import Claimed
from .calls import Execute
from .ear import EARLY, HOLD, RemoteListener

FIRST_AGAIN: Final = 0.005
"""Seconds until a withdrawal is repeated: it may have come before its claim. Then twice as long, up to `AGAIN`."""
AGAIN: Final = 0.1
TURN: Final = 0.005
TURNS: Final = 20
GIVING_BACK: Final = 2.0
"""Seconds that a cancelled claim may take to return what it was given."""


class WaitingClaim:
    """A claim from its sending to its answer. Belongs to one event loop."""

    def __init__(self, request: Claim, listener: RemoteListener, execute: Execute) -> None:
        self._request = request
        self._listener = listener
        self._execute = execute
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._end = self._began + request.wait / 1000
        self._is_withdrawn = False
        self._interrupted = asyncio.Event()

    def interrupt(self) -> None:
        """Lets it see what has changed: it was withdrawn, or its listener was woken or closed."""
        self._interrupted.set()

    def withdraw(self) -> None:
        """Ends its wait, from any thread."""
        self._is_withdrawn = True
        with suppress(RuntimeError):  # Its loop may be closed: then nobody waits.
            self._loop.call_soon_threadsafe(self.interrupt)

    async def run(self) -> Claimed:
        token = self._request.token
        _waiting[token] = self
        self._listener.claims.add(self)
        try:
            return await self._claim()
        except asyncio.CancelledError:
            # Before its caller goes on: what is added then is for others.
            with suppress(RopewayError, TimeoutError):
                async with asyncio.timeout(GIVING_BACK):
                    await asyncio.shield(self._give_back())
            raise
        finally:
            self._listener.claims.discard(self)
            if _waiting.get(token) is self:
                del _waiting[token]

    async def _claim(self) -> Claimed:
        request, listener = self._request, self._listener
        answer, looks, due = Claimed([], 0), request.repeat, math.inf
        while not self._is_withdrawn and not listener.is_closed:
            self._interrupted.clear()
            looks = listener.take() or looks
            sent = self._loop.time()
            left = max(0.0, self._end - sent)
            hold = 0.0 if looks else min(left, HOLD, max(0.0, due - sent))
            answer = await self._held(replace(request, wait=math.ceil(hold * 1000)))
            if answer.jobs or not left:
                waited = answer.waited + int((sent - self._began) * 1000)
                return replace(answer, waited=waited)
            if self._loop.time() < sent + hold * EARLY and not self._interrupted.is_set():
                # The server is about to end.
                await asyncio.sleep(min(left, AGAIN))
            looks = False
            # From the sending on: the server may have looked at any time since, and a look too early costs little.
            due = math.inf if answer.again_in is None else sent + answer.again_in
        return answer

    async def _held(self, claim: Claim) -> Claimed:
        """The answer to one claim, which is withdrawn if this one is interrupted."""
        asking = asyncio.ensure_future(self._execute(claim))
        interrupted = asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait([asking, interrupted], return_when=asyncio.FIRST_COMPLETED)
            pause = FIRST_AGAIN
            while claim.wait and not asking.done():
                await self._execute(self._withdrawal)
                await asyncio.wait([asking], timeout=pause)
                pause = min(2 * pause, AGAIN)
            answer: Claimed = await asking
            return answer
        finally:
            for task in (asking, interrupted):
                task.cancel()
            await asyncio.wait([asking, interrupted])

    @property
    def _withdrawal(self) -> Withdraw:
        return Withdraw(self._request.queue, self._request.worker, self._request.token)

    async def _give_back(self) -> None:
        """Hands back the jobs of a claim whose caller was cancelled."""
        if jobs := (await self._execute(self._withdrawal)).jobs:
            outcomes = [Outcome(job.id, job.token or "", "hand back") for job in jobs]
            await self._execute(Settle(self._request.queue, outcomes))


_waiting: Final[dict[str, WaitingClaim]] = {}
"""The waiting claims of this process, by token."""


async def end_wait(token: str) -> None:
    """Withdraws the claim of this token, if it waits in this process, and waits until it has ended.

    Not for long: its loop may be blocked, or its server silent.
    """
    if claim := _waiting.get(token):
        claim.withdraw()
        for _ in range(TURNS):
            if _waiting.get(token) is not claim:
                break
            await asyncio.sleep(TURN)
