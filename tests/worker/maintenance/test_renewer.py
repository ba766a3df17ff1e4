"""How a worker keeps its locks when it, and not the store, was away."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import pytest

from ropeway import Queue, Worker
from ropeway.worker.job import Interruption, Job
from ropeway.worker.maintenance.renewer import Renewer
from tests.client.tampering import Outage, Tampering

LOCK: Final = 0.4
"""What the worker believes; in the store they last, so that nobody else has a say."""


class Held:
    """A job whose lock a renewer keeps, and what it was told."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.told: list[Interruption] = []
        self.renewer: Final = Renewer(job.queue.store, job.queue.name, lambda: [job], round(LOCK * 1000), self._tell)

    def _tell(self, job: Job, why: Interruption) -> None:
        job.interruption = why
        self.told.append(why)


@pytest.fixture
async def held(tampered_queue: Queue) -> Held:
    await tampered_queue.add("send")
    [job] = await Worker(tampered_queue, lock_duration=60).claim()
    return Held(job)


async def stand_still(*_: Any) -> None:
    """As a process that is stopped before it reads an answer, and goes on when its time is up."""
    time.sleep(LOCK)  # noqa: ASYNC251 - that is the point
    await never_answer()


async def never_answer(*_: Any) -> None:
    await asyncio.Event().wait()


async def test_a_worker_that_stood_still_asks_again_before_it_gives_up_a_lock(held: Held, tampering: Tampering):
    tampering.after["renew"] = stand_still
    await held.renewer.step()
    tampering.after.clear()
    confirmed = held.job.confirmed
    await held.renewer.step()
    assert held.told == []
    assert held.job.confirmed > confirmed


async def test_an_answer_that_lay_there_unread_does_not_put_off_the_next_renewal(held: Held, tampering: Tampering):
    came_late = asyncio.Event()

    def read_late(_: Any) -> None:
        time.sleep(LOCK / 2)
        asyncio.get_running_loop().call_later(LOCK / 4, came_late.set)

    tampering.after["renew"] = read_late
    await held.renewer.step()
    assert not came_late.is_set()


async def test_a_worker_that_stood_still_gives_up_if_nobody_answers_then(held: Held, tampering: Tampering):
    tampering.after["renew"] = stand_still
    await held.renewer.step()
    tampering.before["renew"] = Outage(1)
    await held.renewer.step()
    assert held.told == ["lost"]


async def test_a_worker_that_stands_still_again_and_again_gives_up(held: Held, tampering: Tampering):
    tampering.after["renew"] = stand_still
    await held.renewer.step()
    await held.renewer.step()
    assert held.told == ["lost"]


@pytest.mark.every_store
async def test_a_lock_that_is_lost_does_not_hurry_the_others(held: Held, tampering: Tampering):
    held.job.confirmed = time.monotonic() - LOCK
    held.job.interruption = "lost"
    tampering.before["renew"] = never_answer
    asked = time.monotonic()
    await held.renewer.step()
    assert time.monotonic() - asked > LOCK / 2
