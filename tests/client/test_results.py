"""Waiting for a job's result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from ropeway import JobCancelled, JobFailed, JobHandle, JobNotFound, JobRemoved, Queue, ResultTimeout, Worker
from ropeway.errors import NoResult, StoreClosed, StoreUnavailable
from ropeway.job.record import JobRecord
from ropeway.job.retention import NOT_AT_ALL
from ropeway.store.contract import Store
from ropeway.store.values import Settled
from ropeway.testing.arrange import claim, completed
from ropeway.testing.factories import complete, fail, retry

from .tampering import Door, Outage, Tampering

pytestmark = pytest.mark.every_store

Act: TypeAlias = Callable[[Queue, str], Awaitable[Any]]
FOREVER = 20
"""Seconds, in which anything that is to happen has happened."""


@pytest.fixture
def queue(tampered_queue: Queue) -> Queue:
    return tampered_queue


async def held(queue: Queue) -> JobRecord:
    [job] = await claim(queue.store, now=await queue.store.clock(), queue=queue.name)
    return job


async def finish(queue: Queue, result: str | None = '"sent"', **options: Any) -> Settled:
    return await queue.store.settle(queue.name, [complete(await held(queue), result, **options)])


async def waiting_for(job: JobHandle, tampering: Tampering, **options: Any) -> asyncio.Task[Any]:
    """A task that has looked at the job, found it unfinished, and waits."""
    looked = tampering.answered("get")
    task = asyncio.create_task(job.result(**options))
    await looked
    assert not task.done()
    return task


async def test_a_finished_job_gives_its_result_at_once(queue: Queue):
    job = await queue.add("send")
    await finish(queue, '{"to":["you"]}')
    assert await job.result(timeout=FOREVER) == {"to": ["you"]}


async def test_a_result_of_null_is_a_result(queue: Queue):
    job = await queue.add("send")
    await finish(queue, None)
    assert await job.result(timeout=FOREVER) is None


async def test_an_unfinished_job_is_waited_for(queue: Queue, tampering: Tampering):
    job = await queue.add("send")
    result = await waiting_for(job, tampering)
    await finish(queue)
    assert await asyncio.wait_for(result, FOREVER) == "sent"


async def test_a_failed_attempt_that_is_retried_does_not_end_the_waiting(queue: Queue, tampering: Tampering):
    job = await queue.add("send", attempts=2)
    result = await waiting_for(job, tampering)
    await queue.store.settle(queue.name, [retry(await held(queue))])
    await finish(queue)
    assert await asyncio.wait_for(result, FOREVER) == "sent"


async def _fail(queue: Queue, _: str) -> None:
    await queue.store.settle(queue.name, [fail(await held(queue), reason="no luck")])


async def _cancel(queue: Queue, id: str) -> None:
    await queue.cancel(id, "not needed")


async def _remove(queue: Queue, id: str) -> None:
    await queue.remove(id)


ENDS: dict[str, tuple[Act, type[NoResult], str]] = {
    "failed": (_fail, JobFailed, "no luck"),
    "cancelled": (_cancel, JobCancelled, "not needed"),
    "removed": (_remove, JobRemoved, "remove_on_complete"),
}


@pytest.mark.parametrize(("act", "error", "told"), ENDS.values(), ids=ENDS)
async def test_a_job_that_will_never_have_a_result_says_why(
    queue: Queue, tampering: Tampering, act: Act, error: type[NoResult], told: str
):
    job = await queue.add("send")
    result = await waiting_for(job, tampering)
    await act(queue, job.id)
    for awaited in (result, job.result()):
        with pytest.raises(error, match=told) as raised:
            await asyncio.wait_for(awaited, FOREVER)
        assert (raised.value.queue, raised.value.job_id) == (queue.name, job.id)


async def test_reasons_are_kept_on_the_error(queue: Queue):
    failed = await queue.add("send")
    await _fail(queue, failed.id)
    with pytest.raises(JobFailed) as raised:
        await failed.result()
    assert raised.value.reason == "no luck"
    cancelled = await queue.add("send")
    await cancelled.cancel()
    with pytest.raises(JobCancelled) as also_raised:
        await cancelled.result()
    assert also_raised.value.reason is None


async def test_a_job_that_was_removed_as_it_ended_still_gives_its_result(queue: Queue, tampering: Tampering):
    job = await queue.add("send", remove_on_complete=True)
    result = await waiting_for(job, tampering)
    await finish(queue, keep=NOT_AT_ALL)
    assert await queue.get(job.id) is None
    assert await asyncio.wait_for(result, FOREVER) == "sent"
    assert await job.result(timeout=FOREVER) == "sent", "and later too, as long as its events are kept"


async def test_notices_about_a_finished_job_do_not_hide_its_result(queue: Queue):
    job = await queue.add("send", 1, id="a")
    record = await held(queue)
    await queue.store.settle(queue.name, [complete(record, '"sent"')])
    await queue.add("send", 1, id="a")
    await queue.store.settle(queue.name, [complete(record, '"again"', token="stale")])
    await job.remove()
    assert await job.result(timeout=FOREVER) == "sent"


async def test_the_last_end_of_a_job_that_is_gone_counts(queue: Queue):
    job = await queue.add("send", 1, id="a")
    await finish(queue, '"first"')
    await job.retry()
    await finish(queue, '"second"')
    await job.remove()
    assert await job.result(timeout=FOREVER) == "second"
    await queue.add("send", 1, id="a")
    await job.remove()
    with pytest.raises(JobRemoved):
        await job.result(timeout=FOREVER)


async def test_a_job_that_never_was_is_not_waited_for(queue: Queue):
    with pytest.raises(JobNotFound):
        await JobHandle(queue, "nobody", "send", None).result(timeout=FOREVER)


async def test_a_job_of_an_obliterated_queue_is_not_waited_for(
    queue: Queue, tampering: Tampering, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.client.endings.SAFETY_POLL", 0.05)
    result = await waiting_for(await queue.add("send"), tampering)
    await queue.obliterate()
    with pytest.raises((JobNotFound, JobRemoved)):
        await asyncio.wait_for(result, FOREVER)


async def test_a_timeout_beside_a_worker_does_not_say_that_there_is_none(queue: Queue):
    async with Worker(queue, {"print": print}):
        job = await queue.add("send")
        with pytest.raises(ResultTimeout, match=r"it is waiting$"):
            await job.result(timeout=0.01)


async def test_after_its_timeout_a_job_goes_on(queue: Queue):
    job = await queue.add("send")
    with pytest.raises(ResultTimeout, match="it is waiting") as late:
        await job.result(timeout=0.01)
    assert isinstance(late.value, TimeoutError)
    assert str(late.value).endswith(f"and no worker runs on queue {queue.name!r} of {queue.store.url}")
    assert (late.value.job_id, late.value.seconds) == (job.id, 0.01)
    assert await job.state() == "waiting"
    await finish(queue)
    assert await job.result(timeout="1 minute") == "sent"


async def test_a_job_that_is_removed_right_after_the_last_look_was_there(queue: Queue, tampering: Tampering):
    job = await queue.add("send")

    async def remove(_: Any) -> None:
        tampering.after.clear()
        await job.remove()

    tampering.after["get"] = remove
    # No time at all, so that there is no look but the last.
    with pytest.raises(ResultTimeout, match="it is waiting"):
        await job.result(timeout=0)
    assert await queue.get(job.id) is None


async def test_no_time_at_all_is_enough_for_a_job_that_has_ended(queue: Queue):
    job = await queue.add("send")
    with pytest.raises(ResultTimeout):
        await job.result(timeout=0)
    await finish(queue)
    assert await job.result(timeout=0) == "sent"


async def test_a_result_whose_wake_was_lost_is_found_when_the_time_is_over(queue: Queue, tampering: Tampering):
    job = await queue.add("send")
    result = await waiting_for(job, tampering, timeout=0.5)
    stream, last_look = Door(), Door()
    tampering.before["events"] = stream.pass_through
    tampering.before["get"] = last_look.pass_through
    await finish(queue)
    last_look.opened.set()
    assert await result == "sent"


async def test_a_timeout_of_the_caller_is_his_own(queue: Queue):
    job = await queue.add("send")
    with pytest.raises(TimeoutError) as late:
        async with asyncio.timeout(0.01):
            await job.result(timeout=FOREVER)
    assert not isinstance(late.value, ResultTimeout)


async def test_many_that_wait_share_one_reader_which_ends_with_them(queue: Queue, tampering: Tampering):
    jobs = await queue.add_many(["send"] * 50)
    before = tampering.calls["events"]
    waits = [await waiting_for(job, tampering) for job in jobs]
    assert tampering.calls["events"] - before <= 5
    reader = queue.endings._reader
    assert reader is not None
    for _ in jobs:
        await finish(queue)
    assert await asyncio.wait_for(asyncio.gather(*waits), FOREVER) == ["sent"] * 50
    await asyncio.wait([reader], timeout=FOREVER)
    assert reader.done()
    assert queue.endings._reader is None
    assert not queue.endings._waiters


async def test_several_may_wait_for_one_job_and_one_of_them_may_leave(queue: Queue, tampering: Tampering):
    job = await queue.add("send")
    staying, leaving, also_staying = [await waiting_for(job, tampering) for _ in range(3)]
    leaving.cancel()
    await asyncio.wait([leaving])
    await finish(queue)
    assert {await asyncio.wait_for(task, FOREVER) for task in (staying, also_staying)} == {"sent"}


async def test_who_comes_as_the_last_one_leaves_is_not_forgotten(queue: Queue, tampering: Tampering):
    job = await queue.add("send")
    first = await waiting_for(job, tampering)
    first.cancel()
    second = await waiting_for(job, tampering)
    assert first.cancelled()
    await finish(queue)
    assert await asyncio.wait_for(second, FOREVER) == "sent"


async def test_an_end_between_the_reading_and_the_look_is_seen(queue: Queue, tampering: Tampering):
    job = await queue.add("send")
    door = Door()
    tampering.before["get"] = door.pass_through
    result = asyncio.create_task(job.result())
    await door.reached.wait()
    del tampering.before["get"]
    await finish(queue, '"early"')
    door.opened.set()
    assert await asyncio.wait_for(result, FOREVER) == "early"


async def test_a_store_that_fails_is_told_to_all_that_wait_and_to_nobody_after(queue: Queue, tampering: Tampering):
    jobs = await queue.add_many(["send"] * 3)
    waits = [await waiting_for(job, tampering) for job in jobs]
    tampering.before["events"] = Outage(1)
    await finish(queue)
    errors = await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), FOREVER)
    assert all(isinstance(error, StoreUnavailable) for error in errors)
    assert await jobs[0].result(timeout=FOREVER) == "sent"


async def test_a_store_that_fails_at_once_is_told_too(queue: Queue, tampering: Tampering):
    job = await queue.add("send")
    tampering.before["events"] = Outage(1)
    with pytest.raises(StoreUnavailable):
        await job.result(timeout=FOREVER)
    await finish(queue)
    assert await job.result(timeout=FOREVER) == "sent"


async def test_a_waiter_that_missed_events_looks_for_itself(queue: Queue, tampering: Tampering):
    job = await queue.add("send")
    result = await waiting_for(job, tampering)
    tampering.after["events"] = lambda page: replace(page, entries=[], gap=True)
    await finish(queue)
    assert await asyncio.wait_for(result, FOREVER) == "sent"


async def test_a_job_found_by_its_id_can_be_waited_for(queue: Queue, store: Store):
    record = await completed(store, now=await store.clock())
    job = await queue.get(record.id)
    assert job is not None
    assert await job.result(timeout=FOREVER) == "sent"


async def test_a_closed_store_is_said_to_everybody_who_waits_then(queue: Queue):
    job = await queue.add("send")
    await queue.store.close()
    for _ in range(2):
        with pytest.raises(StoreClosed):
            await job.result(timeout="1 minute")
