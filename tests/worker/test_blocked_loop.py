"""What waits for a blocked loop is taken by one side only: the loop, or the thread that stands in for it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, cast

import pytest

from ropeway import Job, Queue, Worker
from ropeway.job.outcomes import Outcome
from ropeway.job.record import JobRecord
from ropeway.worker.attempts import Attempts
from ropeway.worker.job import Job as RunningJob
from ropeway.worker.slots import Slots
from tests.client.tampering import Tampering
from tests.patience import PATIENCE

from .watching import Ear, entered, told

MANY: Final = 20_000


def running_job(queue: Queue, id: str) -> RunningJob:
    return RunningJob(queue, JobRecord(queue.name, id, "send", "null", "{}", "active", 0, 0, 0, token="a"), 0)


class Counted:
    """Attempts that only note the jobs they are given."""

    def __init__(self) -> None:
        self.run_ids: list[str] = []
        self.threads = None

    async def run(self, job: RunningJob) -> Outcome:
        self.run_ids.append(job.id)
        return Outcome(job.id, job.token, "complete")


async def test_a_job_is_either_begun_or_handed_back():
    queue = Queue("letters", "memory://")
    attempts, taken = Counted(), list[str]()
    slots = Slots(5, cast(Attempts, attempts), lambda job, _: slots.held.discard(job), lambda *_: None)
    jobs = [running_job(queue, str(number)) for number in range(MANY)]
    is_over = threading.Event()

    def take() -> None:
        while not is_over.is_set():
            found = slots.take_unstarted()
            taken.extend(job.id for job in found)
            slots.held.difference_update(found)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        for start in range(0, MANY, 10):
            slots.start(jobs[start : start + 10])
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            while slots.held:  # noqa: ASYNC110 - the thread tells nobody
                await asyncio.sleep(0.01)
    finally:
        is_over.set()
        thread.join()
        slots.close()
    assert sorted([*attempts.run_ids, *taken], key=int) == [job.id for job in jobs]


@pytest.mark.every_store
async def test_jobs_of_a_claim_whose_answer_was_not_read_are_handed_back(tampered_queue: Queue, tampering: Tampering):
    """And run once, by whoever claims them next."""
    queue, loop_thread, beside = tampered_queue, threading.get_ident(), asyncio.Event()
    returned = threading.Event()
    blocks: list[Any] = []

    def block(answer: Any) -> None:
        if threading.get_ident() == loop_thread and answer.jobs and answer.jobs[0].name == "second" and not blocks:
            blocks.append(returned.wait(PATIENCE))

    def note(_: Any) -> None:
        if threading.get_ident() != loop_thread:
            returned.set()

    async def wait(_: Job) -> None:
        await beside.wait()

    runs: list[str] = []

    async def run(job: Job) -> None:
        runs.append(job.id)

    worker = Worker(queue, {"first": wait, "second": run})
    ear = Ear(worker, "lock-lost", "stalled")
    async with worker:
        first = await queue.add("first")
        await told(queue, "active", first)
        tampering.after["claim"], tampering.after["settle"] = block, note
        second = await queue.add("second")
        await second.result(timeout=PATIENCE)
        beside.set()
    assert blocks == [True]
    assert runs == [second.id]
    assert (await second.refresh()).stalled_count == 0
    assert ear.names == []


async def _its_claim_waits(worker: Worker) -> None:
    assert worker._runtime is not None
    dispatcher = worker._runtime.dispatcher
    async with asyncio.timeout(PATIENCE):
        while dispatcher._waiting_claim is None:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.001)
    # It was sent before this, and is with the store when this is answered.
    await worker.queues[0].store.clock()


class _Warned(logging.Handler):
    """Waits, without the loop, for the warning that the loop is blocked."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._has_come = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "code outside of handlers has blocked the loop" in record.getMessage():
            self._has_come.set()

    def wait(self) -> bool:
        return self._has_come.wait(PATIENCE)


async def test_a_job_does_not_wait_for_an_idle_worker_whose_loop_is_blocked(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
):
    """The application blocks it, while the worker's claim waits in the store."""
    sibling = queue.store.sibling()
    runs: list[str] = []

    async def run(job: Job) -> None:
        runs.append(job.id)

    async def add_and_claim() -> str:
        elsewhere = Queue(queue.name, store=sibling)
        job = await elsewhere.add("send")
        [theirs] = await Worker(elsewhere).claim(wait=PATIENCE)
        await theirs.complete()
        await sibling.close()
        return job.id

    worker, warned = Worker(queue, run), _Warned()
    ear = Ear(worker, "slow-loop", "lock-lost", "stalled")
    monkeypatch.setattr(logging.getLogger("ropeway"), "handlers", [warned])
    async with worker:
        first = await queue.add("send")
        await first.result(timeout=PATIENCE)
        await _its_claim_waits(worker)
        # Blocks the loop, until the job is done elsewhere.
        with ThreadPoolExecutor(1) as beside:
            theirs = beside.submit(asyncio.run, add_and_claim()).result(PATIENCE)
        assert warned.wait()
        slow = await ear.hear("slow-loop")
        last = await queue.add("send")
        await last.result(timeout=PATIENCE)

    assert runs == [first.id, last.id]
    assert theirs not in runs
    assert slow.job is None
    assert set(ear.names) == {"slow-loop"}


async def test_a_worker_in_a_thread_hands_back_its_jobs_when_its_shutdown_is_over(queue: Queue):
    begun, close_soon = asyncio.Event(), threading.Event()
    here = asyncio.get_running_loop()

    async def block(_: Job) -> None:
        here.call_soon_threadsafe(begun.set)
        close_soon.wait(PATIENCE)

    worker = Worker(queue, block, grace=0, cancel_grace=0)
    job = await queue.add("block")
    running = asyncio.create_task(asyncio.to_thread(worker.run_sync))
    await entered(begun)
    worker.stop()
    await told(queue, "active", job)
    while await job.state() != "waiting":  # noqa: ASYNC110 - its loop is blocked
        await asyncio.sleep(0.01)
    close_soon.set()
    await asyncio.wait_for(running, PATIENCE)
    assert (await job.refresh()).attempts_made == 0


class Blocks:
    """Handlers that hold the loop for a while, and how long that was."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def hold(self, job: Job) -> None:
        began = time.monotonic()
        threading.Event().wait(job.data)
        self.seconds.append(time.monotonic() - began)


@pytest.mark.parametrize("seconds", [0.26, 0.3, 0.45])
async def test_a_short_block_is_told_with_its_own_time(queue: Queue, seconds: float):
    blocks = Blocks()
    worker = Worker(queue, blocks.hold)
    ear = Ear(worker, "slow-loop")
    async with worker:
        added_at = time.monotonic()
        job = await queue.add("hold", seconds)
        slow = await ear.hear("slow-loop")
        heard_after = time.monotonic() - added_at
    assert slow.job is not None
    assert slow.job.id == job.id
    assert blocks.seconds[0] <= slow.data["seconds"] <= heard_after


async def test_a_long_block_shows_its_stack_once_and_no_frame_of_ropeway(
    queue: Queue, caplog: pytest.LogCaptureFixture
):
    worker = Worker(queue, Blocks().hold)
    ear = Ear(worker, "slow-loop")
    async with worker:
        await queue.add("hold", 1.5)
        await ear.hear("slow-loop")
    told = [record.getMessage() for record in caplog.records if "the loop for" in record.getMessage()]
    [still, over] = told
    assert "threading.Event().wait(job.data)" in still
    assert "ropeway/worker" not in still.replace("tests/worker", "")
    assert "\n" not in over


async def test_what_a_handler_returned_in_its_thread_is_known_before_the_loop_sees_it():
    job = running_job(Queue("letters", "memory://"), "1")
    attempts = Attempts(cast(Any, None), cast(Any, None), cast(Any, None), cast(Any, None), lambda *_: None)
    assert attempts.completed_in_thread(job) is None
    attempts._returned[job] = {"sent": 1}
    outcome = attempts.completed_in_thread(job)
    assert outcome is not None
    assert (outcome.move, outcome.result) == ("complete", '{"sent":1}')
    attempts._returned[job] = object()
    assert attempts.completed_in_thread(job) is None
