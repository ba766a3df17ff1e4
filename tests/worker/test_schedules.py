"""Workers fire schedules: one job per tick, whatever goes on around them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from ropeway import Job, Queue, SyncJob, Worker
from ropeway.job.instants import Instant, instant_of
from ropeway.job.schedules import LATE_AFTER, NOT_FINAL, tick_id
from ropeway.store.contract import Store
from ropeway.store.values import ScheduleWrite, StallRules
from ropeway.testing.conformance.fixtures import NewHandle
from ropeway.testing.factories import QUEUE
from ropeway.worker.maintenance.firing import fire_schedules
from tests.client.ticking import fire_next
from tests.patience import PATIENCE

from .watching import Counting, Gate, entered, told

EVERY = 20 * 60
HELD = "3 hours"
"""A lock that outlives ticks which the test fires before their time."""


async def put(queue: Queue, id: str = "pulse", **given: Any) -> None:
    """A schedule of which no tick is due in the time of a test."""
    await queue.schedule(id, "ping", id, **{"every": EVERY, **given})


async def make_due(queue: Queue, *ids: str) -> Instant:
    """Takes schedules back to their last tick, which is due now; answers its instant."""
    schedules = await queue.store.schedules(queue.name, ids)
    due = schedules[0].next_at
    assert due is not None
    last = due - EVERY * 1000
    await queue.store.write_schedules(queue.name, [ScheduleWrite(one.id, one.value, last) for one in schedules])
    return last


async def history_of(queue: Queue, id: str = "pulse") -> list[tuple[str | None, str | None]]:
    schedule = await queue.schedules.get(id)
    assert schedule is not None
    return [(tick.job, tick.skipped) for tick in schedule.history]


class TestTicks:
    @pytest.mark.every_store
    async def test_a_due_schedule_makes_a_job_that_knows_it(self, queue: Queue):
        seen: list[Any] = []

        async def note(job: Job) -> None:
            seen.append((job.id, job.name, job.data, job.schedule))

        await put(queue)
        last = await make_due(queue, "pulse")
        async with Worker(queue, note):
            await told(queue, "completed")

        assert seen == [(tick_id("pulse", last), "ping", "pulse", "pulse")]
        assert await history_of(queue) == [(tick_id("pulse", last), None)]

    async def test_handlers_in_threads_know_it_too(self, queue: Queue):
        def handle(job: SyncJob) -> str | None:
            return job.schedule

        await put(queue)
        async with Worker(queue, handle):
            assert await (await queue.schedules.run("pulse")).result(timeout=PATIENCE) == "pulse"
            assert await (await queue.add("ping")).result(timeout=PATIENCE) is None

    @pytest.mark.every_store
    async def test_many_workers_at_once_make_one_job_per_tick(self, queue: Queue, new_handle: NewHandle):
        ids = [f"s-{number}" for number in range(30)]
        for id in ids:
            await put(queue, id)
        last = await make_due(queue, *ids)
        stores = [new_handle() for _ in range(3)]
        counting = Counting()
        workers = [Worker(Queue(QUEUE, store=store), counting, stalled_interval=0.05) for store in stores]
        for worker in workers:
            await worker.__aenter__()
        await told(queue, "completed", count=len(ids))
        for worker in workers:
            await worker.__aexit__(None, None, None)
        for store in stores:
            await store.close()

        assert dict(counting.runs) == dict.fromkeys(ids, 1)
        for schedule in await queue.schedules.list():
            assert schedule.fired == 1
            assert [tick.job for tick in schedule.history] == [tick_id(schedule.id, last)]

    @pytest.mark.every_store
    async def test_workers_that_saw_the_same_tick_make_one_job_of_it(
        self, queue: Queue, store: Store, new_handle: NewHandle
    ):
        await put(queue, overlap="skip")
        await make_due(queue, "pulse")
        ticked = await store.tick(QUEUE, StallRules())
        others = [new_handle() for _ in range(5)]
        await asyncio.gather(*(fire_schedules(other, QUEUE, ticked.schedules, ticked.now) for other in others))
        for other in others:
            await other.close()

        assert (await queue.counts())["waiting"] == 1
        assert [skipped for _, skipped in await history_of(queue)] == [None]

    @pytest.mark.every_store
    async def test_one_that_is_written_while_the_worker_idles_fires_on_time(self, queue: Queue):
        """Nothing but the wake-up tells the worker of it: its sweep is far away."""
        async with Worker(queue, _nothing, stalled_interval="1 hour") as worker:
            await worker.idle()
            await queue.schedule("pulse", "ping", every=1, limit=1)
            await told(queue, "completed")
        [tick] = (await queue.schedules.list())[0].history

        assert tick.fired_at - tick.at < timedelta(seconds=5)

    @pytest.mark.every_store
    async def test_one_that_is_resumed_while_the_worker_idles_fires_on_time(self, queue: Queue):
        await queue.schedule("pulse", "ping", every=1, limit=1)
        await queue.schedules.pause("pulse")
        async with Worker(queue, _nothing, stalled_interval="1 hour"):
            await queue.schedules.resume("pulse")
            await told(queue, "completed")

    async def test_ticks_go_on_whatever_becomes_of_the_jobs(self, queue: Queue):
        async def fail(job: Job) -> None:
            raise ValueError("no luck")

        await put(queue, remove_on_fail=True)
        async with Worker(queue, fail, lock_duration=HELD):
            for number in range(1, 4):
                await fire_next(queue, "pulse")
                await told(queue, "failed", count=number)

        assert len(await history_of(queue)) == 3

    async def test_a_paused_queue_gets_its_jobs_when_it_goes_on(self, queue: Queue):
        await put(queue)
        await queue.pause()
        await make_due(queue, "pulse")
        async with Worker(queue, _nothing):
            await told(queue, "added")
            assert (await queue.counts())["waiting"] == 1
            await queue.resume()
            await told(queue, "completed")

    async def test_where_jobs_are_claimed_by_hand_they_fire_too(self, queue: Queue):
        await put(queue)
        last = await make_due(queue, "pulse")
        [claimed] = await Worker(queue).claim()

        assert claimed.id == tick_id("pulse", last)
        await claimed.complete()


class TestOverlap:
    @pytest.mark.every_store
    async def test_allow_runs_them_beside_each_other(self, queue: Queue):
        await put(queue)
        gate = Gate()
        async with Worker(queue, gate, concurrency=5, lock_duration=HELD):
            for _ in range(3):
                await fire_next(queue, "pulse")
            await gate.holds(3)
            gate.opened.set()

    @pytest.mark.every_store
    async def test_skip_leaves_ticks_out_while_one_runs(self, queue: Queue):
        await put(queue, overlap="skip")
        gate = Gate()
        async with Worker(queue, gate, concurrency=5, lock_duration=HELD):
            first = tick_id("pulse", await fire_next(queue, "pulse"))
            await entered(gate.entered)
            await fire_next(queue, "pulse")
            await told(queue, "deduplicated")
            gate.opened.set()
            await told(queue, "completed")
            last = tick_id("pulse", await fire_next(queue, "pulse"))
            await told(queue, "completed", count=2)

        assert gate.runs == 2
        assert await history_of(queue) == [(first, None), (first, NOT_FINAL), (last, None)]

    @pytest.mark.every_store
    async def test_queue_lets_one_wait_for_the_end(self, queue: Queue):
        await put(queue, overlap="queue")
        gate = Gate()
        async with Worker(queue, gate, concurrency=5, lock_duration=HELD):
            await fire_next(queue, "pulse")
            await entered(gate.entered)
            second = tick_id("pulse", await fire_next(queue, "pulse"))
            await fire_next(queue, "pulse")
            assert gate.runs == 1
            gate.opened.set()
            await told(queue, "completed", count=2)

        assert (gate.runs, gate.most) == (2, 1)
        assert [skipped for _, skipped in await history_of(queue)] == [None, None, NOT_FINAL]
        assert (await history_of(queue))[2][0] == second

    @pytest.mark.every_store
    async def test_cancel_ends_the_running_one(self, queue: Queue):
        await put(queue, overlap="cancel")
        gate = Gate()
        async with Worker(queue, gate, concurrency=5, lock_duration=HELD):
            await fire_next(queue, "pulse")
            await entered(gate.entered)
            last = await fire_next(queue, "pulse")
            await told(queue, "cancelled")
            async with asyncio.timeout(PATIENCE):
                while gate.runs < 2 or len(gate.running) > 1:  # noqa: ASYNC110 - the first is told to stop
                    await asyncio.sleep(0.005)
            gate.opened.set()
            event = await told(queue, "completed")

        assert event.job_id == tick_id("pulse", last)


class TestTrouble:
    async def test_a_damaged_schedule_stops_no_other(
        self, queue: Queue, store: Store, caplog: pytest.LogCaptureFixture
    ):
        await put(queue, "whole")
        last = await make_due(queue, "whole")
        damaged = {
            "broken": '{"rule":',
            "foreign": '"a text"',
            "no-rule": '{"rule":{},"template":{"name":"ping"}}',
            "bad-cron": '{"rule":{"cron":"nightly"},"template":{"name":"ping"}}',
            "zero": '{"rule":{"every":0},"template":{"name":"ping"}}',
        }
        await store.write_schedules(
            QUEUE, [ScheduleWrite(id, value, last - number) for number, (id, value) in enumerate(damaged.items())]
        )
        async with Worker(queue, _nothing):
            event = await told(queue, "completed")

        assert event.job_id == tick_id("whole", last)
        assert [one.next_at for one in await store.schedules(QUEUE, [*damaged])] == [None] * len(damaged)
        assert all(f"schedule {id} of {QUEUE} cannot be read" in caplog.text for id in damaged)

    async def test_a_zone_that_this_machine_does_not_know_puts_off_its_schedule_alone(
        self, queue: Queue, store: Store, caplog: pytest.LogCaptureFixture
    ):
        await put(queue, "whole")
        last = await make_due(queue, "whole")
        value = '{"rule":{"cron":"0 9 * * *","tz":"Mars/Base"},"template":{"name":"ping"}}'
        await store.write_schedules(QUEUE, [ScheduleWrite("far-away", value, last - 1)])
        async with Worker(queue, _nothing):
            await told(queue, "completed")
        [there] = await store.schedules(QUEUE, ["far-away"])

        assert there.next_at is not None
        assert await store.clock() < there.next_at <= await store.clock() + LATE_AFTER
        assert "pip install tzdata" in caplog.text

    async def test_a_schedule_that_is_removed_while_it_is_due_makes_no_job(self, queue: Queue, store: Store):
        await put(queue)
        await make_due(queue, "pulse")
        ticked = await store.tick(QUEUE, StallRules())
        await queue.schedules.remove("pulse")
        await fire_schedules(store, QUEUE, ticked.schedules, ticked.now)

        assert await queue.schedules.list() == []
        assert not any((await queue.counts()).values())

    async def test_one_that_is_changed_while_it_is_due_is_fired_as_it_is_now(self, queue: Queue, store: Store):
        await put(queue)
        await make_due(queue, "pulse")
        ticked = await store.tick(QUEUE, StallRules())
        await queue.schedule("pulse", "ping", "changed", every=EVERY)
        await fire_schedules(store, QUEUE, ticked.schedules, ticked.now)
        assert not any((await queue.counts()).values())

        again = await store.tick(QUEUE, StallRules())
        await fire_schedules(store, QUEUE, again.schedules, again.now)
        [job] = (await queue.find()).jobs
        assert job.data == "changed"

    async def test_a_clock_that_was_set_back_makes_no_tick_again(self, queue: Queue, store: Store):
        await put(queue)
        at = await fire_next(queue, "pulse")
        async with Worker(queue, _nothing):
            await told(queue, "completed")
        schedule = await queue.schedules.get("pulse")

        assert schedule is not None
        assert schedule.next_at is not None
        assert instant_of(schedule.next_at) == at + EVERY * 1000
        assert (await store.tick(QUEUE, StallRules(), now=at)).schedules == []


async def _nothing(_: Job) -> None: ...
