"""Workers and their handlers in code without an event loop."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from ropeway import InvalidOption, Job, JobFailed, LockLost, Queue, SyncJob, SyncRefused, Worker
from ropeway.errors import HandlerError
from tests.client import programs
from tests.patience import PATIENCE


def in_a_thread(worker: Worker) -> threading.Thread:
    thread = threading.Thread(target=worker.run_sync)
    thread.start()
    return thread


def test_a_worker_runs_in_any_thread_until_it_is_stopped_from_another(queue: Queue):
    worker = Worker(queue, lambda job: job.data * 2)
    running = in_a_thread(worker)
    assert queue.sync.add("double", 21).result(timeout=PATIENCE) == 42
    worker.stop()
    running.join()


@pytest.mark.every_store
def test_a_worker_works_in_the_background_of_a_with_block(queue: Queue):
    with Worker(queue, lambda job: job.data * 2) as worker:
        assert queue.sync.add("double", 21).result(timeout=PATIENCE) == 42
        assert [info.id for info in queue.sync.workers()] == [worker.id]
    assert queue.sync.workers() == []


def test_a_worker_that_cannot_start_says_so_at_the_beginning_of_its_block(queue: Queue):
    worker = Worker(queue)
    with pytest.raises(InvalidOption, match="handler"), worker:
        pytest.fail("the block was entered")
    worker.handler("double")(lambda job: job.data * 2)
    with worker:
        assert queue.sync.add("double", 21).result(timeout=PATIENCE) == 42


def test_a_worker_that_cannot_go_on_says_so_at_the_end_of_its_block(queue: Queue):
    stop = threading.Event()
    leaked = threading.Event()
    worker = Worker(queue, lambda job: stop.wait(), cancel_grace=0, max_leaked=1)
    worker.on("leaked", lambda _: leaked.set())
    queue.sync.add("hang", timeout=0.01)
    with pytest.raises(HandlerError, match="1 handlers do not stop"), worker:
        leaked.wait(30)
    stop.set()


async def test_a_with_block_on_the_thread_of_a_loop_is_refused(queue: Queue):
    with pytest.raises(SyncRefused, match="async with"), Worker(queue, lambda job: None):
        pytest.fail("the block was entered")


def test_a_stop_before_the_thread_came_to_its_worker_is_not_lost(queue: Queue):
    job = queue.sync.add("double", 21)
    worker = Worker(queue, lambda job: job.data * 2)
    worker.stop()
    in_a_thread(worker).join()
    assert job.state() == "waiting"
    running = in_a_thread(worker)
    assert job.result(timeout=PATIENCE) == 42
    worker.stop()
    running.join()


@pytest.mark.every_store
def test_a_handler_in_a_thread_adds_jobs_and_waits_for_them(queue: Queue):
    def parent(job: SyncJob) -> object:
        return job.queue.sync.add("child", 1).result(timeout=PATIENCE)

    worker = Worker(queue, {"parent": parent, "child": lambda job: "from the child"})
    running = in_a_thread(worker)
    assert queue.sync.add("parent").result(timeout=PATIENCE) == "from the child"
    worker.stop()
    running.join()


def test_a_sync_call_in_an_async_handler_fails_the_job_with_what_to_do(queue: Queue):
    async def handler(job: Job) -> None:
        job.queue.sync.add("child")

    worker = Worker(queue, handler)
    running = in_a_thread(worker)
    with pytest.raises(JobFailed, match=r"await queue\.add"):
        queue.sync.add("parent").result(timeout=PATIENCE)
    worker.stop()
    running.join()


def test_a_running_worker_is_paused_resized_and_resumed_from_another_thread(queue: Queue):
    worker = Worker(queue, {"first": lambda job: "ran"}, concurrency=1)
    running = in_a_thread(worker)
    queue.sync.add("first").result(timeout=PATIENCE)
    worker.pause()
    worker.concurrency = 3
    worker.handler("second")(lambda job: "ran too")
    job = queue.sync.add("second")
    worker.resume()
    assert job.result(timeout=PATIENCE) == "ran too"
    worker.stop()
    running.join()


@pytest.mark.every_store
def test_jobs_are_claimed_and_settled_by_hand_without_a_loop(queue: Queue):
    queue.sync.add_many([("send", number, {"attempts": 2}) for number in range(4)])
    worker = Worker(queue)
    done, failed, later, back = worker.claim_sync(4)
    done.renew()
    done.progress(50)
    done.log("half way")
    done.update_data("new")
    done.complete({"ok": True})
    failed.fail("no luck")
    later.delay(60)
    back.release()
    assert (done.state(), done.result(), done.data) == ("completed", {"ok": True}, "new")
    assert later.state() == "delayed"
    assert {failed.state(), back.state()} == {"waiting"}
    with pytest.raises(LockLost):
        back.renew()
    assert [job.attempt for job in worker.claim_sync(4, wait=1)] in ([1, 2], [2, 1])
    assert worker.claim_sync(wait=0.01) == []


def test_a_claimed_job_is_gone_on_with_elsewhere_without_a_loop(queue: Queue):
    queue.sync.add_many([("send", 1), ("print", 2)])
    [claimed] = Worker(queue).claim_sync(names=["print"])
    Worker(queue).claimed_sync(claimed.id, claimed.token).complete("printed")
    assert (claimed.data, claimed.result()) == (2, "printed")


async def test_claiming_on_the_thread_of_a_loop_is_refused(queue: Queue):
    with pytest.raises(SyncRefused):
        Worker(queue).claim_sync()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_signals_stop_a_worker_on_the_main_thread_in_good_order(number: signal.Signals, tmp_path: Path):
    script = """
    def handler(job):
        say("started")
        while not job.cancelled: time.sleep(0.01)
        return "stopped"
    queue.sync.add("long", id="a")
    Worker(queue, handler, grace=0.1).run_sync()
    say(queue.sync.get("a").state())
    """
    program = programs.start(script, f"sqlite:///{tmp_path}/jobs.db")
    assert program.stdout is not None
    assert program.stdout.readline() == "started\n"
    program.send_signal(number)
    code, said, complaints = programs.end(program)
    assert (code, complaints) == (0, "")
    assert said in (["completed"], ["waiting"])
