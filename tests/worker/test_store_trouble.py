"""A store that fails for a while, or whose answers get lost: nothing is lost, and nothing is run twice."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from ropeway import Job, Queue, Worker
from ropeway.errors import StoreCorrupt, StoreUnavailable
from ropeway.store.commands import Claim
from tests.client.tampering import Outage, Tampering
from tests.patience import PATIENCE

from .watching import Counting, Ear, Gate, told

VERBS = ("claim", "settle", "renew", "tick", "revoked", "remember", "count", "find")
"""All that a running worker asks of its store."""


@pytest.fixture
def queue(tampered_queue: Queue) -> Queue:
    return tampered_queue


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropeway.worker.service.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("ropeway.worker.service.LONGEST_PAUSE", 0.05)


class EveryThird:
    """Lets two calls pass and fails the third, again and again."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, *_: Any) -> None:
        self._count += 1
        if self._count % 3 == 0:
            raise StoreUnavailable("test://", "on purpose")


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_that_fails_for_a_while_stops_nothing_for_good(queue: Queue, tampering: Tampering, verb: str):
    handler = Counting()
    tampering.before[verb] = Outage(3)
    await queue.add_many(("send", n) for n in range(20))
    async with Worker(queue, {"send": handler}, lock_duration=1):
        jobs = await queue.add_many(("send", n) for n in range(20, 40))
        assert [await job.result(timeout=PATIENCE) for job in jobs] == list(range(20, 40))
        await told(queue, "completed", count=40)
    assert handler.runs == dict.fromkeys(range(40), 1)


@pytest.mark.every_store
async def test_lost_calls_and_lost_answers_lose_no_job_and_run_none_twice(queue: Queue, tampering: Tampering):
    handler = Counting()
    for verb in ("claim", "settle"):
        tampering.before[verb] = EveryThird()
        tampering.after[verb] = EveryThird()
    async with Worker(queue, handler, concurrency=4):
        jobs = await queue.add_many(("send", n) for n in range(100))
        assert [await job.result(timeout=PATIENCE) for job in jobs] == list(range(100))
    assert handler.runs == dict.fromkeys(range(100), 1)
    for job in (await queue.find("completed")).jobs:
        assert job.snapshot is not None
        assert (job.snapshot.attempts_started, job.snapshot.stalled_count) == (1, 0)


def claims(tampering: Tampering) -> list[Claim]:
    requests = [request for (request,) in tampering.given_to("claim")]
    return requests + [then for _, _, then in tampering.given_to("settle") if then is not None]


@pytest.mark.every_store
async def test_a_claim_whose_answer_was_lost_is_repeated_with_its_token(queue: Queue, tampering: Tampering):
    handler = Counting()
    await queue.add("send", "once")
    tampering.after["claim"] = Outage(2)
    async with Worker(queue, handler):
        await told(queue, "completed")
    first, second, third, *_ = claims(tampering)
    assert first.token == second.token == third.token
    assert [first.repeat, second.repeat, third.repeat] == [False, True, True]
    assert handler.runs == {"once": 1}


async def test_a_new_claim_has_a_new_token(queue: Queue, tampering: Tampering):
    async with Worker(queue, Counting(), concurrency=1):
        await queue.add_many(("send", n) for n in range(5))
        await told(queue, "completed", count=5)
    tokens = [request.token for request in claims(tampering)]
    assert len(tokens) == len(set(tokens)) >= 5


@pytest.mark.every_store
async def test_an_outcome_whose_answer_was_lost_counts_once(queue: Queue, tampering: Tampering):
    tampering.after["settle"] = Outage(2)
    worker = Worker(queue, Counting())
    ear = Ear(worker, "completed", "lock-lost")
    async with worker:
        job = await queue.add("send", 1, remove_on_complete=True)
        assert await job.result(timeout=PATIENCE) == 1
        await ear.hear("completed")
    assert ear.names == ["completed"]
    assert sum(metric.completed for metric in await queue.metrics()) == 1


@pytest.mark.every_store
async def test_a_failed_attempt_whose_answer_was_lost_counts_once(queue: Queue, tampering: Tampering):
    async def handle(job: Job) -> None:
        raise ValueError

    tampering.after["settle"] = Outage(2)
    async with Worker(queue, handle):
        job = await queue.add("send", attempts=2, backoff=60)
        await told(queue, "delayed", job)
        await told(queue, "retrying", job)
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made) == ("delayed", 1)


async def test_a_short_trouble_with_renewing_disturbs_no_handler(queue: Queue, tampering: Tampering):
    gate = Gate()
    worker = Worker(queue, gate, lock_duration=1, stalled_interval=0.05)
    ear = Ear(worker, "lock-lost", "stalled")
    async with worker:
        job = await queue.add("send")
        await gate.holds(1)
        tampering.before["renew"] = down = Outage(3)
        await down.hit()
        await asyncio.wait_for(tampering.answered("renew"), PATIENCE)
        await asyncio.wait_for(tampering.answered("renew"), PATIENCE)
        gate.opened.set()
        assert await job.result(timeout=PATIENCE) == "done"
    assert ear.names == []
    assert (await job.refresh()).attempts_started == 1


@pytest.mark.every_store
async def test_a_worker_that_cannot_renew_stops_its_handlers_before_others_run_the_job_twice(
    queue: Queue, tampering: Tampering
):
    gate = Gate()
    runs = count()

    async def handle(job: Job) -> str:
        return await gate(job) if next(runs) == 0 else "again"

    worker = Worker(queue, handle, lock_duration=1, stalled_interval=0.05)
    async with worker:
        job = await queue.add("send", attempts=1)
        await gate.holds(1)
        # All of the store is gone, for longer than the lock lasts.
        tampering.before = dict.fromkeys(VERBS, Outage(1_000_000))
        await gate.holds(0)
        tampering.before = {}
        assert await job.result(timeout=PATIENCE) == "again"
    assert (await job.refresh()).attempts_made == 0


async def test_a_warning_that_locks_were_not_renewed_says_why(
    queue: Queue, tampering: Tampering, caplog: pytest.LogCaptureFixture
):
    gate = Gate()

    async def never_answer(*_: Any) -> None:
        await asyncio.Event().wait()

    tampering.before["renew"] = never_answer
    async with Worker(queue, gate, lock_duration=0.2):
        await queue.add("send")
        await gate.holds(1)
        await gate.holds(0)
        gate.opened.set()
    assert "were not renewed: TimeoutError" in caplog.text


async def test_jobs_of_a_claim_that_was_answered_too_late_are_not_begun_under_a_dead_lock(
    queue: Queue, tampering: Tampering
):
    handler = Counting()
    await queue.add("send", "once")

    async def answer_late(claimed: Any) -> None:
        if claimed.jobs:
            tampering.after.clear()
            await asyncio.sleep(0.8)

    tampering.after["claim"] = answer_late
    async with Worker(queue, handler, lock_duration=0.6, stalled_interval=0.05, max_stalled_count=5):
        await told(queue, "completed")
    assert handler.runs == {"once": 1}


async def test_a_worker_waits_for_a_store_that_is_down_when_it_starts(queue: Queue, tampering: Tampering):
    tampering.before["open"] = down = Outage(3)
    worker = Worker(queue, Counting(), max_global_concurrency=2)
    tampering.before["configure"] = Outage(1)
    running = asyncio.create_task(worker.run())
    await down.hit()
    job = await queue.add("send", 1)
    assert await job.result(timeout=PATIENCE) == 1
    worker.stop()
    await asyncio.wait_for(running, PATIENCE)


@pytest.mark.parametrize("verb", ["open", "claim", "settle", "renew", "tick", "revoked", "remember"])
async def test_a_store_that_must_not_be_used_ends_the_worker_with_its_error(
    queue: Queue, tampering: Tampering, verb: str
):
    tampering.before[verb] = Outage(1_000_000, StoreCorrupt("test://", "on purpose"))
    worker = Worker(queue, Gate(), lock_duration=0.2, cancel_grace=0.1)
    if verb == "settle":
        worker = Worker(queue, Counting())
    await queue.add("send", 1)
    with pytest.raises(StoreCorrupt):
        await asyncio.wait_for(worker.run(), PATIENCE)
    assert worker.running == []


async def test_an_embedded_worker_raises_what_ended_it_when_the_block_ends(queue: Queue, tampering: Tampering):
    async def embed() -> None:
        async with Worker(queue, Counting()):
            tampering.before["claim"] = down = Outage(1_000_000, StoreCorrupt("test://", "on purpose"))
            await queue.add("send", 1)
            await down.hit()

    with pytest.raises(StoreCorrupt):
        await embed()


async def test_a_worker_that_ended_with_an_error_can_be_run_again(queue: Queue, tampering: Tampering):
    worker = Worker(queue, Counting())
    tampering.before["claim"] = Outage(1, StoreCorrupt("test://", "on purpose"))
    with pytest.raises(StoreCorrupt):
        await asyncio.wait_for(worker.run(), PATIENCE)
    async with worker:
        assert await (await queue.add("send", 1)).result(timeout=PATIENCE) == 1


async def test_the_end_of_a_worker_survives_a_store_that_is_gone(queue: Queue, tampering: Tampering):
    async with Worker(queue, Counting()):
        await (await queue.add("send", 1)).result(timeout=PATIENCE)
        tampering.before["forget"] = Outage(1_000_000)
    tampering.before.clear()
    [left] = await queue.workers()
    assert left.queues == (queue.name,)
