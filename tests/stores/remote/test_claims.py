"""Waiting claims of the remote store, before a server that goes by the clock of the test."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import pytest
from msgspec.structs import replace

from ropeway.job.instants import Milliseconds
from ropeway.store.commands import Claim
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.store.values import Claimed
from ropeway.stores.remote.claims import WaitingClaim
from ropeway.stores.remote.ear import HOLD, Ear, RemoteListener
from ropeway.testing import FakeClock
from ropeway.testing.factories import QUEUE, WORKER, claim_request, new_job

HELD: Final[Milliseconds] = int(HOLD * 1000)
LONG: Final = 3 * HELD


class Server:
    """Holds claims by a listener that it knows and that is not woken there: it looks only when their wait is over."""

    def __init__(self) -> None:
        self.requests: list[tuple[Milliseconds, Milliseconds | str]] = []
        """When each came, with the wait of a claim, or `withdraw`. In tens: the loop's time is a fraction."""
        self.overtaking = 0
        """How many withdrawals come before their claim."""
        self.clock = FakeClock()
        self.store: Store = connect("memory://")
        self._withdrawn = asyncio.Event()

    async def execute(self, command: Any, /) -> Any:
        what = round(command.wait, -1) if isinstance(command, Claim) else "withdraw"
        self.requests.append((round(self.clock.elapsed, -1), what))
        if not isinstance(command, Claim):
            self.overtaking -= 1
            if self.overtaking < 0:
                self._withdrawn.set()
            return Claimed([], 0)
        self._withdrawn.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(command.wait / 1000):
                await self._withdrawn.wait()
                return Claimed([], 0)
        return await self.store.do(replace(command, wait=0), self.clock.instant)


@pytest.fixture
async def server() -> Server:
    return Server()


async def claimed_from(server: Server, *, woken_after: Milliseconds) -> Claimed:
    """The answer to a waiting claim whose listener is woken once: a poll has used up the wake-up."""

    async def no_poll(*_: object) -> bytes:
        raise AssertionError("nobody waits by the listener itself")

    ear = Ear(no_poll)
    listener = RemoteListener(lambda: ear, lambda: None, "http://localhost", ("jobs", [QUEUE]), WORKER)
    claim = WaitingClaim(replace(claim_request(), wait=LONG), listener, server.execute)
    with server.clock.controlling_loop():
        claiming = asyncio.create_task(claim.run())
        await server.clock.advance(woken_after / 1000)
        listener.wake()
        await server.clock.advance((LONG - woken_after) / 1000)
        listener.close()
        return await claiming


async def test_a_look_that_finds_a_delayed_job_shortens_the_next_hold(server: Server):
    await server.store.add([[new_job("a", delay=50)]], now=server.clock.instant)

    claimed = await claimed_from(server, woken_after=10)

    assert [job.id for job in claimed.jobs] == ["a"]
    assert server.requests == [(0, HELD), (10, "withdraw"), (10, 0), (10, 40)]


async def test_a_job_that_is_due_after_the_next_hold_is_not_forgotten_by_then(server: Server):
    await server.store.add([[new_job("a", delay=HELD + 50)]], now=server.clock.instant)

    claimed = await claimed_from(server, woken_after=10)

    assert [job.id for job in claimed.jobs] == ["a"]
    # A look between two holds: how old the answer to the first is, is not known.
    assert server.requests[3:] == [(10, HELD), (HELD + 10, 0), (HELD + 10, 40)]


async def test_if_there_is_no_job_a_wake_up_costs_one_look_and_holds_stay_as_long(server: Server):
    claimed = await claimed_from(server, woken_after=10)

    assert claimed.jobs == []
    holds = [(10, HELD), (HELD + 10, HELD), (2 * HELD + 10, HELD - 10)]
    assert server.requests == [(0, HELD), (10, "withdraw"), (10, 0), *holds, (LONG, 0)]


async def test_a_withdrawal_that_overtakes_its_claim_is_repeated_soon_and_then_less_often(server: Server):
    server.overtaking = 7

    await claimed_from(server, woken_after=0)

    withdrawals = [at for at, what in server.requests if what == "withdraw"]
    assert withdrawals == pytest.approx([0, 5, 15, 35, 75, 155, 255, 355], abs=10)
