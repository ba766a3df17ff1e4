"""Starting and ending a worker: nothing is lost, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ropeway import Job, Queue, RopewayError, ShutdownTimeout, StoreError, SyncJob, Worker
from tests.client.tampering import Door, Outage, Tampering
from tests.patience import PATIENCE

from .watching import Ear, Gate, ThreadGate, entered, told

PATIENT: Final[dict[str, Any]] = {"grace": 3_600, "cancel_grace": 3_600}
"""Options of a worker that would wait for an hour, and shall not."""


@pytest.fixture(autouse=True)
def _no_threads_are_left() -> Iterator[None]:
    yield
    keepers = [thread for thread in threading.enumerate() if thread.name == "ropeway-maintenance"]
    for keeper in keepers:
        keeper.join(PATIENCE)
        assert not keeper.is_alive()


async def fine(_: Job) -> str:
    return "fine"


def run(worker: Worker) -> asyncio.Task[None]:
    return asyncio.create_task(worker.run())


async def ended(running: asyncio.Task[None]) -> None:
    await asyncio.wait_for(running, PATIENCE)


@pytest.mark.every_store
async def test_a_stopped_worker_waits_for_its_handlers(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate)
    running = run(worker)
    job = await queue.add("send")
    await gate.holds(1)
    worker.stop()
    later = await queue.add("send")
    gate.opened.set()
    await ended(running)
    assert (await job.refresh()).result == "done"
    assert await later.state() == "waiting", "nothing more is claimed"
    assert await queue.workers() == []


async def test_locks_are_renewed_while_a_shutdown_waits(tampered_queue: Queue, tampering: Tampering):
    gate = Gate()
    worker = Worker(tampered_queue, gate, lock_duration=0.5, stalled_interval=0.05)
    running = run(worker)
    job = await tampered_queue.add("send")
    await gate.holds(1)
    worker.stop()
    for _ in range(4):
        await asyncio.wait_for(tampering.answered("renew"), PATIENCE)
    gate.opened.set()
    await ended(running)
    seen = await job.refresh()
    assert (seen.state, seen.stalled_count) == ("completed", 0)


@pytest.mark.every_store
async def test_when_the_grace_is_over_jobs_are_handed_back_without_using_an_attempt(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate, grace=0.05)
    ear = Ear(worker, "waiting")
    running = run(worker)
    job = await queue.add("send", attempts=1)
    await gate.holds(1)
    worker.stop()
    await ended(running)
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made, seen.stalled_count) == ("waiting", 0, 0)
    assert gate.running == []
    assert ear.names == ["waiting"]
    async with Worker(queue, fine):
        assert await job.result(timeout=PATIENCE) == "fine"


async def test_a_handler_that_finishes_when_it_is_told_to_stop_is_completed(queue: Queue):
    begun = asyncio.Event()

    async def handle(_: Job) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "in time"
        return "never"

    async with Worker(queue, handle, grace=0):
        job = await queue.add("send")
        await entered(begun)
    assert (await job.refresh()).result == "in time"


async def test_a_thread_is_told_that_the_grace_is_over(queue: Queue):
    gate = ThreadGate()
    async with Worker(queue, gate, grace=0.05):
        job = await queue.add("send")
        await gate.enter()
    assert gate.saw_cancelled
    assert await job.state() == "waiting"


async def test_a_stubborn_handler_is_an_error_after_everything_is_cleaned_up(queue: Queue):
    gate = ThreadGate(heeds=False)

    def handle(job: SyncJob) -> str:
        return gate(job) if job.data == "stubborn" else "fine"

    worker = Worker(queue, handle, grace=0.05, cancel_grace=0.05)
    running = run(worker)
    job = await queue.add("send", "stubborn", attempts=1)
    await gate.enter()
    worker.stop()
    with pytest.raises(ShutdownTimeout) as late:
        await ended(running)
    assert late.value.job_ids == (job.id,)
    assert isinstance(late.value, TimeoutError)
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made) == ("waiting", 0)
    assert await queue.workers() == []
    gate.opened.set()


async def test_a_second_stop_waits_no_longer(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate, **PATIENT)
    running = run(worker)
    job = await queue.add("send")
    await gate.holds(1)
    worker.stop()
    worker.stop()
    await ended(running)
    assert await job.state() == "waiting"


async def test_a_second_stop_gives_up_on_a_stubborn_handler(queue: Queue):
    gate = ThreadGate(heeds=False)
    worker = Worker(queue, gate, **PATIENT)
    running = run(worker)
    job = await queue.add("send")
    await gate.enter()
    worker.stop()
    worker.stop()
    with pytest.raises(ShutdownTimeout):
        await ended(running)
    assert await job.state() == "waiting"
    gate.opened.set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_stop_a_worker_and_are_given_back_afterwards(queue: Queue, number: signal.Signals):
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    gate = Gate()
    running = run(Worker(queue, gate, grace=3600))
    job = await queue.add("send")
    await gate.holds(1)
    os.kill(os.getpid(), number)
    gate.opened.set()
    await ended(running)
    assert (await job.refresh()).result == "done"
    assert {each: signal.getsignal(each) for each in before} == before


async def test_a_second_signal_hurries(queue: Queue):
    gate = Gate()
    running = run(Worker(queue, gate, **PATIENT))
    job = await queue.add("send")
    await gate.holds(1)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
    await ended(running)
    assert await job.state() == "waiting"


async def test_a_signal_stops_all_workers_of_the_process(queue: Queue, make_queue: Any):
    before = signal.getsignal(signal.SIGTERM)
    workers = [run(Worker(make_queue(name), fine)) for name in ("a", "b", "c")]
    for name in ("a", "b", "c"):
        await (await make_queue(name).add("send")).result(timeout=PATIENCE)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(asyncio.gather(*workers), PATIENCE)
    assert signal.getsignal(signal.SIGTERM) == before


async def test_one_of_two_workers_that_ends_leaves_signals_to_the_other(queue: Queue):
    first, second = Worker(queue, fine), Worker(queue, fine)
    running = [run(first), run(second)]
    await (await queue.add("send")).result(timeout=PATIENCE)
    second.stop()
    await ended(running[1])
    os.kill(os.getpid(), signal.SIGTERM)
    await ended(running[0])


async def test_an_embedded_worker_works_while_the_block_runs(queue: Queue):
    before = signal.getsignal(signal.SIGTERM)
    worker = Worker(queue, fine)
    async with worker as started:
        assert started is worker
        assert signal.getsignal(signal.SIGTERM) == before
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
    job = await queue.add("send")
    assert await job.state() == "waiting"
    assert worker.running == []


async def test_an_error_in_the_block_ends_the_worker_in_good_order(queue: Queue):
    gate = Gate()
    job = await queue.add("send")

    async def fail_in_the_block() -> None:
        async with Worker(queue, gate, grace=0):
            await gate.holds(1)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail_in_the_block()
    assert await job.state() == "waiting"


@pytest.mark.every_store
async def test_a_worker_can_be_run_again(queue: Queue):
    worker = Worker(queue, fine)
    for _ in range(3):
        running = run(worker)
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
        worker.stop()
        await ended(running)


async def test_a_worker_runs_once_at_a_time(queue: Queue):
    worker = Worker(queue, fine)
    first = run(worker)
    await asyncio.sleep(0)
    with pytest.raises(RopewayError, match="already running"):
        await worker.run()
    assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
    with pytest.raises(RopewayError, match="already running"):
        await worker.run()
    worker.stop()
    await ended(first)


async def test_stopping_what_does_not_run_does_nothing(queue: Queue):
    worker = Worker(queue, fine)
    worker.stop()
    async with worker:
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
    worker.stop()


@pytest.mark.every_store
async def test_a_cancelled_run_ends_in_good_order(queue: Queue):
    gate = Gate()
    running = run(Worker(queue, gate, grace=0.05))
    job = await queue.add("send")
    await gate.holds(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ended(running)
    assert await job.state() == "waiting"
    assert await queue.workers() == []


async def test_a_run_that_is_cancelled_twice_leaves_nothing_running(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate, grace=3600)
    running = run(worker)
    job = await queue.add("send")
    await gate.holds(1)
    running.cancel()
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ended(running)
    await gate.holds(0)
    assert worker.running == []
    assert await job.state() == "waiting"
    assert await queue.workers() == []


async def cancel_at_every_turn(running: asyncio.Task[None]) -> None:
    """As the task groups of anyio do, until it has ended."""
    async with asyncio.timeout(PATIENCE):
        while not running.done():
            running.cancel()
            await asyncio.sleep(0)


async def test_a_run_that_is_cancelled_at_every_turn_hands_its_jobs_back(queue: Queue):
    gate = Gate()
    running = run(Worker(queue, gate, grace=3600))
    job = await queue.add("send")
    await gate.holds(1)
    await cancel_at_every_turn(running)
    assert running.cancelled()
    assert await job.state() == "waiting"
    assert (await job.refresh()).attempts_made == 0
    assert await queue.workers() == []


async def test_a_run_that_is_cancelled_at_every_turn_while_it_starts_leaves_nothing_running(
    tampered_queue: Queue, tampering: Tampering
):
    door = Door()
    tampering.before["open"] = door.pass_through
    running = run(Worker(tampered_queue, fine))
    await entered(door.reached)
    await cancel_at_every_turn(running)
    door.opened.set()
    assert running.cancelled()
    assert await tampered_queue.workers() == []


async def test_a_worker_whose_own_tasks_were_cancelled_says_so_and_ends(queue: Queue):
    """As by a handler that cancels all tasks of its loop."""
    gate = Gate()
    running = run(Worker(queue, gate, grace=3600))
    await queue.add("send")
    await gate.holds(1)
    for task in asyncio.all_tasks():
        if task.get_name() == "ropeway-dispatcher":
            task.cancel()
    with pytest.raises(RopewayError, match="cancelled"):
        await ended(running)
    assert await queue.workers() == []


async def test_whoever_is_cancelled_with_every_other_task_is_told_just_that(queue: Queue):
    async def work() -> None:
        async with Worker(queue, fine):
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                # Its own way out, in which the worker finds that its tasks have ended.
                await told_so.wait()

    begun, told_so = asyncio.Event(), asyncio.Event()
    working = asyncio.create_task(work())
    await asyncio.wait_for(begun.wait(), PATIENCE)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    asyncio.get_running_loop().call_later(0.01, told_so.set)
    with pytest.raises(asyncio.CancelledError):
        await ended(working)
    assert await queue.workers() == []


async def test_a_run_that_is_cancelled_while_it_starts_leaves_nothing_running(
    tampered_queue: Queue, tampering: Tampering
):
    for verb in ("open", "revoked", "remember"):
        reached = threading.Event()

        def hold(*_: Any, reached: threading.Event = reached) -> Any:
            reached.set()
            return asyncio.Event().wait()

        tampering.before = {verb: hold}
        running = run(Worker(tampered_queue, fine, **PATIENT))
        assert await asyncio.to_thread(reached.wait, PATIENCE)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ended(running)


async def test_a_worker_can_be_stopped_while_it_waits_for_its_store(tampered_queue: Queue, tampering: Tampering):
    tampering.before["open"] = down = Outage(1_000_000)
    worker = Worker(tampered_queue, fine, **PATIENT)
    running = run(worker)
    await down.hit()
    worker.stop()
    await ended(running)


@pytest.mark.every_store
async def test_what_a_claim_still_brings_after_the_stop_is_handed_back_untouched(
    tampered_queue: Queue, tampering: Tampering
):
    gate = Gate()
    door = Door()
    tampering.before["claim"] = door.pass_through
    job = await tampered_queue.add("send")
    worker = Worker(tampered_queue, gate)
    running = run(worker)
    await entered(door.reached)
    worker.stop()
    door.opened.set()
    await ended(running)
    assert gate.runs == 0
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made, seen.stalled_count) == ("waiting", 0, 0)


@pytest.mark.every_store
async def test_an_idle_worker_does_not_wait_for_a_store_that_is_gone(tampered_queue: Queue, tampering: Tampering):
    worker = Worker(tampered_queue, fine, **PATIENT)
    running = run(worker)
    await (await tampered_queue.add("send")).result(timeout=PATIENCE)
    down = Outage(1_000_000)
    tampering.before = dict.fromkeys(("claim", "settle", "renew", "tick", "revoked", "remember", "forget"), down)
    # This ends the claim that waits, and another follows.
    worker.concurrency += 1
    await down.hit()
    worker.stop()
    await ended(running)
    tampering.before.clear()


@pytest.mark.every_store
async def test_a_shutdown_waits_for_outcomes_only_as_long_as_their_locks_last(
    tampered_queue: Queue, tampering: Tampering, caplog: pytest.LogCaptureFixture
):
    gate = Gate()
    worker = Worker(tampered_queue, gate, lock_duration=1.5)
    running = run(worker)
    job = await tampered_queue.add("send")
    await gate.holds(1)
    tampering.before["settle"] = Outage(1_000_000)
    gate.opened.set()
    worker.stop()
    await ended(running)
    assert "1 outcomes could not be settled" in caplog.text
    assert await job.state() == "active", "until its lock runs out and another worker takes it"


async def test_a_second_stop_does_not_wait_for_outcomes(tampered_queue: Queue, tampering: Tampering):
    gate = Gate()
    worker = Worker(tampered_queue, gate, **PATIENT)
    running = run(worker)
    await tampered_queue.add("send")
    await gate.holds(1)
    tampering.before["settle"] = down = Outage(1_000_000)
    gate.opened.set()
    worker.stop()
    await down.hit()
    worker.stop()
    await ended(running)


async def test_a_worker_in_a_thread_of_its_own_works_too(tmp_path: Any):
    """Without signals, which only the main thread gets."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    stop: list[Any] = []

    async def serve() -> None:
        async with Queue("letters", url) as queue:
            worker = Worker(queue, fine)
            loop = asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(worker.stop))
            await worker.run()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    async with Queue("letters", url) as queue:
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
    stop[0]()
    await asyncio.to_thread(thread.join, PATIENCE)
    assert not thread.is_alive()


async def test_a_worker_whose_store_is_closed_ends_with_that_error():
    queue = Queue("letters", "memory://")
    running = run(Worker(queue, fine))
    await (await queue.add("send")).result(timeout=PATIENCE)
    await queue.close()
    with pytest.raises(StoreError):
        await ended(running)


@pytest.mark.every_store
async def test_drained_is_told_once_the_last_job_is_done(queue: Queue):
    async with Worker(queue, fine):
        await queue.add_many(["send"] * 5)
        await told(queue, "completed", count=5)
        await told(queue, "drained")


async def test_a_worker_whose_thread_cannot_be_started_says_so(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    start = threading.Thread.start

    def fail(thread: threading.Thread) -> None:
        if thread.name == "ropeway-maintenance":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(RuntimeError, match="new thread"):
        await ended(run(Worker(queue, fine)))
