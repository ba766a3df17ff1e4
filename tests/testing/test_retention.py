"""Retention of a queue in two stages, on a fake clock."""

from __future__ import annotations

import threading

from ropeway import Queue, RetiredJob, Worker
from ropeway.job.stages import callback_queue
from ropeway.testing import FakeClock
from tests.worker.callbacks import Callback, handle
from tests.worker.watching import Gate


async def test_a_callback_that_fails_is_called_again(clock: FakeClock, queue: Queue):
    callback = Callback(failures=2)
    await queue.set_retention(stale_after="1 day")
    async with Worker(queue, handle, on_stale=callback):
        job = await queue.add("send", remove_on_complete=False)
        await clock.advance("1 day")
        assert callback.calls == 1
        await clock.advance("1 minute")

    assert (callback.calls, (await callback.next()).id) == (3, job.id)


async def test_a_plain_function_runs_in_a_thread(clock: FakeClock, queue: Queue):
    called: list[tuple[str, bool]] = []

    def callback(job: RetiredJob) -> None:
        called.append((job.id, threading.current_thread() is threading.main_thread()))

    await queue.set_retention(delete_after="1 hour")
    async with Worker(queue, handle, on_delete=callback):
        job = await queue.add("send")
        await clock.advance("1 hour")
        await clock.advance("1 second")

    assert called == [(job.id, False)]


async def test_a_worker_with_one_callback_leaves_the_other_stage_to_others(clock: FakeClock, queue: Queue):
    first, second = Callback(), Callback()
    await queue.set_retention(stale_after="1 hour", delete_after="1 hour")
    async with Worker(queue, handle, on_delete=second):
        pass
    async with Worker(queue, handle, on_stale=first):
        job = await queue.add("send")
        await clock.advance("1 hour")

    assert (first.calls, second.calls) == (1, 0)
    left = await Queue(callback_queue(queue.name, "deleted"), store=queue.store).find("waiting")
    assert [callback.snapshot.origin and callback.snapshot.origin.id for callback in left] == [job.id]


async def test_a_worker_that_stops_leaves_retention_and_timers_to_others(clock: FakeClock, queue: Queue):
    gate = Gate()
    await queue.set_retention(stale_after="1 hour")
    async with Worker(queue, {"send": handle, "hold": gate}, grace="1 day") as worker:
        job = await queue.add("send")
        await job.result()
        await queue.add("hold")
        await gate.holds(1)
        delayed = await queue.add("send", delay="1 hour")
        worker.stop()
        await clock.advance("2 hours")
        stale, state = await queue.find(stale=True), await delayed.state()
        gate.opened.set()
    assert (len(stale), state) == (0, "delayed")


async def test_after_callbacks_are_forgotten_nothing_is_kept_for_them(clock: FakeClock, queue: Queue):
    async with Worker(queue, handle, on_stale=Callback()):
        pass
    await queue.set_retention(stale_after="1 hour")
    await queue.forget_callbacks()
    async with Worker(queue, handle):
        await queue.add("send")
        await clock.advance("2 hours")

    assert (await Queue(callback_queue(queue.name, "stale"), store=queue.store).find()).next is None
    assert len(await queue.find(stale=True)) == 1
