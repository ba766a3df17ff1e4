"""Moving and removing jobs of a queue all at once."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from ropeway import InvalidInput, Queue
from ropeway.errors import InvalidDuration, InvalidOption, NotConnected, QueueBusy, StoreUnavailable
from ropeway.job.ids import new_token
from ropeway.job.instants import Instant
from ropeway.store.commands import Claim
from ropeway.store.contract import Store
from ropeway.store.values import BATCH
from ropeway.testing.arrange import ARRANGED, active, job_in
from ropeway.testing.factories import fail

from .tampering import Tampering


async def fail_all(queue: Queue, now: Instant | None = None) -> None:
    """Fails every waiting job, in their order."""
    while True:
        request = Claim(queue.name, "worker-1", new_token(), BATCH, 30_000)
        jobs = (await queue.store.claim(request, now=now)).jobs
        if not jobs:
            return
        await queue.store.settle(queue.name, [fail(job) for job in jobs], now=now)


@pytest.mark.every_store
async def test_retry_all_retries_every_failed_job_whatever_their_number(queue: Queue):
    added = [job.id for job in await queue.add_many(("send", n) for n in range(2 * BATCH + 5))]
    await fail_all(queue)
    assert await queue.retry_all() == 2 * BATCH + 5
    assert (await queue.counts())["waiting"] == 2 * BATCH + 5
    first = await queue.find("waiting", limit=3)
    assert [job.id for job in first.jobs] == added[:3]


async def test_retry_all_takes_the_oldest_up_to_a_limit(queue: Queue):
    added = [job.id for job in await queue.add_many(["send"] * 5)]
    await fail_all(queue)
    assert await queue.retry_all(limit=2) == 2
    assert [job.id for job in (await queue.find("waiting")).jobs] == added[:2]


async def test_retry_all_is_for_one_final_state(queue: Queue, store: Store):
    now = await store.clock()
    ids = {state: (await job_in(state, store, now=now)).id for state in reversed([*ARRANGED])}
    assert await queue.retry_all("cancelled") == 1
    assert {job.id for job in (await queue.find("waiting")).jobs} == {ids["waiting"], ids["cancelled"]}
    for state in ("waiting", "delayed", "active"):
        with pytest.raises(InvalidOption, match="completed or failed or cancelled"):
            await queue.retry_all(state)


async def test_retry_all_can_reset_attempts(queue: Queue):
    job = await queue.add("send", attempts=2)
    await fail_all(queue)
    await queue.retry_all(reset=True)
    assert (await job.refresh()).attempts_made == 0


async def test_retry_all_can_be_for_those_that_finished_long_ago(queue: Queue, store: Store):
    now = await store.clock()
    old = await job_in("failed", store, now=now - 60_000)
    await job_in("failed", store, now=now)
    assert await queue.retry_all(older_than="2 minutes") == 0
    assert await queue.retry_all(older_than="30 seconds") == 1
    assert [job.id for job in (await queue.find("waiting")).jobs] == [old.id]
    with pytest.raises(InvalidInput, match="duration"):
        await queue.retry_all(older_than="long")


async def test_retry_all_leaves_out_jobs_that_fail_again_meanwhile(tampered_queue: Queue, tampering: Tampering):
    queue = tampered_queue
    await queue.add_many(["send"] * 3)
    await fail_all(queue)
    tampering.after["retry"] = lambda _: fail_all(queue, now=later)
    later = await queue.store.clock() + 60_000
    assert await queue.retry_all() == 3
    assert (await queue.counts())["failed"] == 3


@pytest.mark.every_store
async def test_promote_all_ends_every_delay_the_first_due_first(queue: Queue):
    jobs = [await queue.add("send", delay=60 - n) for n in range(3)]
    assert await queue.promote_all(limit=1) == 1
    assert await jobs[2].state() == "waiting"
    assert await queue.promote_all() == 2
    assert (await queue.counts())["delayed"] == 0


async def test_drain_removes_what_waits_and_nothing_else(queue: Queue, store: Store):
    now = await store.clock()
    for state in reversed([*ARRANGED]):
        await job_in(state, store, now=now)
    assert await queue.drain() == 1
    assert await queue.counts() == {state: int(state != "waiting") for state in ARRANGED}
    assert await queue.drain(delayed=True) == 1
    assert (await queue.counts())["delayed"] == 0


async def test_a_drain_of_delayed_jobs_must_be_meant(queue: Queue):
    await queue.add_many([("send", 1), ("send", 2, {"delay": 60})])
    not_meant: Any = "no"
    with pytest.raises(InvalidOption, match="delayed"):
        await queue.drain(delayed=not_meant)
    assert (await queue.counts())["waiting"] == 1


async def test_clean_removes_the_oldest_of_a_state_and_names_them(queue: Queue, store: Store):
    now = await store.clock()
    old = [(await job_in("completed", store, now=now - 60_000 + n)).id for n in range(3)]
    new = await job_in("completed", store, now=now)
    assert await queue.clean("30 s", "completed", limit=2) == old[:2]
    assert await queue.clean("30 s") == old[2:]
    assert await queue.get(new.id) is not None


@pytest.mark.every_store
async def test_clean_goes_on_until_all_are_gone(queue: Queue):
    await queue.add_many(["send"] * (BATCH + 7))
    assert len(await queue.clean(0, "waiting")) == BATCH + 7
    assert (await queue.counts())["waiting"] == 0


async def test_a_clean_that_has_begun_does_not_say_that_nothing_was_sent(tampered_queue: Queue, tampering: Tampering):
    await tampered_queue.add_many(["send"] * (BATCH + 1))

    def be_gone(*_: object) -> None:
        if tampering.calls["clean"] == 2:
            raise NotConnected("test://", "on purpose")

    tampering.before["clean"] = be_gone
    with pytest.raises(StoreUnavailable, match="unknown") as raised:
        await tampered_queue.clean(0, "waiting")
    assert raised.type is StoreUnavailable


async def test_clean_never_touches_active_jobs(queue: Queue, store: Store):
    await active(store, now=await store.clock())
    with pytest.raises(InvalidOption):
        await queue.clean(0, "active")
    assert (await queue.counts())["active"] == 1


async def test_bounds_that_cannot_be_meant_are_refused(queue: Queue):
    calls: list[Any] = [
        lambda: queue.clean(float("nan")),
        lambda: queue.clean(0, "nowhere"),
        lambda: queue.clean(0, limit=0),
        lambda: queue.clean(0, limit="5"),  # type: ignore[arg-type]
        lambda: queue.retry_all(limit=0),
        lambda: queue.retry_all("nowhere"),
        lambda: queue.promote_all(limit=-1),
        lambda: queue.set_global_concurrency(0),
        lambda: queue.set_global_concurrency(1.5),  # type: ignore[arg-type]
        lambda: queue.pause(""),
        lambda: queue.resume(5),  # type: ignore[arg-type]
    ]
    await queue.add("send")
    for call in calls:
        with pytest.raises(InvalidInput):
            await call()
    assert (await queue.counts())["waiting"] == 1


async def test_obliterate_forgets_everything_about_the_queue(queue: Queue, store: Store):
    now = await store.clock()
    for state in reversed([*ARRANGED]):
        if state != "active":
            await job_in(state, store, now=now)
    await queue.add_many(["send"] * BATCH)
    await queue.set_global_concurrency(5)
    assert await queue.obliterate() == BATCH + len(ARRANGED) - 1
    assert not any((await queue.counts()).values())
    assert queue.name not in await store.queues()
    assert not (await queue.settings()).paused
    assert await queue.metrics() == []
    assert (await queue.add("send")).created


@pytest.mark.every_store
async def test_obliterate_of_a_busy_queue_only_pauses_it(queue: Queue, store: Store):
    await active(store, now=await store.clock())
    job = await queue.add("send")
    with pytest.raises(QueueBusy, match="force=True") as refused:
        await queue.obliterate()
    assert (refused.value.queue, refused.value.active) == (queue.name, 1)
    assert await job.state() == "waiting"
    assert (await queue.settings()).paused


async def test_obliterate_by_force_takes_active_jobs_too(queue: Queue, store: Store):
    record = await active(store, now=await store.clock())
    assert await queue.obliterate(force=True) == 1
    assert await queue.get(record.id) is None
    revoked = await store.settle(queue.name, [fail(record)])
    assert revoked.answers[0].verdict in ("missing", "lost")


@pytest.mark.parametrize("older_than", [-5, -0.001, timedelta(-1), math.nan, math.inf, "-5 s", None])
async def test_an_age_of_less_than_nothing_moves_nothing(queue: Queue, store: Store, older_than: Any):
    now = await store.clock()
    for state in reversed([*ARRANGED]):
        await job_in(state, store, now=now)
    before = await queue.counts()

    for call in (queue.clean, lambda age: queue.clean(age, "failed"), lambda age: queue.retry_all(older_than=age)):
        with pytest.raises(InvalidDuration, match="option 'older_than'"):
            await call(older_than)

    assert await queue.counts() == before
