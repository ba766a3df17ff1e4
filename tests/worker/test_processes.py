"""Handlers in processes: they may crash, hang or compute, and hurt nobody else."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from ropeway import InvalidInput, JobCancelled, JobFailed, Queue, RopewayError, Worker, in_process
from ropeway.job.record import JobRecord
from ropeway.worker import shortage
from ropeway.worker.process_protocol import Start, encode_line
from tests.patience import PATIENCE

from . import process_handlers as handlers


@pytest.fixture(params=["memory", "sqlite"])
async def queue(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Queue]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/jobs.db"
    async with Queue("crunching", url) as queue:
        yield queue


async def outcome(queue: Queue, function: Any, data: Any = None, **options: Any) -> Any:
    async with Worker(queue, in_process(function)):
        job = await queue.add("crunch", data, **options)
        return await job.result(timeout=PATIENCE)


async def reason(queue: Queue, function: Any, **options: Any) -> str:
    with pytest.raises(JobFailed) as failed:
        await outcome(queue, function, **options)
    return failed.value.reason


async def test_a_process_is_used_again_for_the_next_job(queue: Queue):
    async with Worker(queue, in_process(handlers.answer_pid), concurrency=1):
        jobs = [await queue.add("crunch") for _ in range(3)]
        pids = {await job.result(timeout=PATIENCE) for job in jobs}
    assert len(pids) == 1
    assert os.getpid() not in pids


@pytest.mark.parametrize(
    ("limit", "processes"),
    [
        ({"max_process_jobs": 2}, [2, 2, 1]),
        # Python alone needs more, so that each job has a process of its own.
        ({"max_process_memory": "1 MB"}, [1, 1, 1, 1, 1]),
        ({"max_process_jobs": 5, "max_process_memory": "100 GB"}, [5]),
    ],
)
async def test_a_process_is_replaced_after_so_many_jobs_or_bytes(queue: Queue, limit: Any, processes: list[int]):
    async with Worker(queue, in_process(handlers.answer_pid), concurrency=1, **limit):
        jobs = [await queue.add("crunch") for _ in range(5)]
        pids = [await job.result(timeout=PATIENCE) for job in jobs]
    assert [len(list(same)) for _, same in groupby(pids)] == processes


async def test_an_async_handler_runs_in_a_process(queue: Queue):
    assert await outcome(queue, handlers.echo, {"a": [1, "é", None]}) == {
        "data": {"a": [1, "é", None]},
        "attempt": 1,
    }


async def test_progress_log_and_data_reach_the_store(queue: Queue):
    async with Worker(queue, in_process(handlers.report)):
        job = await queue.add("crunch", {"step": 1})
        assert await job.result(timeout=PATIENCE) == {"step": 2}
    seen = await job.refresh()
    assert (seen.progress, seen.data) == (50, {"step": 2})
    assert [line.text for line in (await queue.history(job.id)).log] == ["half way"]


@pytest.mark.parametrize(
    ("function", "cause"), [(handlers.segfault, "SIGSEGV"), (handlers.exit_at_once, "exit code 3")]
)
async def test_a_crash_fails_the_job_and_nothing_else(queue: Queue, function: Any, cause: str):
    assert await reason(queue, function) == f"WorkerCrashed: the handler's process ended: {cause}"
    assert await outcome(queue, handlers.echo) == {"data": None, "attempt": 1}


async def test_a_crash_uses_an_attempt_and_may_be_retried(queue: Queue):
    await reason(queue, handlers.segfault, attempts=2)
    [job] = (await queue.find("failed")).jobs
    assert (await job.refresh()).attempts_made == 2


async def test_errors_keep_their_reason_and_their_trace(queue: Queue):
    assert await reason(queue, handlers.raise_value_error) == "ValueError: bad luck"
    [job] = (await queue.find("failed")).jobs
    [failure] = (await queue.history(job.id)).failures
    assert "raise_value_error" in failure.trace


async def test_system_exit_fails_the_job(queue: Queue):
    assert (await reason(queue, handlers.raise_system_exit)).startswith("SystemExit")


@pytest.mark.parametrize("function", [handlers.raise_unrecoverable, handlers.answer_a_set])
async def test_what_no_retry_can_help_is_not_retried(queue: Queue, function: Any):
    await reason(queue, function, attempts=5)
    [job] = (await queue.find("failed")).jobs
    assert (await job.refresh()).attempts_made == 1


async def test_a_postponed_job_runs_again(queue: Queue):
    assert await outcome(queue, handlers.postpone_once) == "second start"


async def test_a_timeout_kills_the_process(queue: Queue):
    async with Worker(queue, in_process(handlers.hang)):
        job = await queue.add("crunch", timeout=1.5)
        with pytest.raises(JobFailed, match="AttemptTimeout"):
            await job.result(timeout=PATIENCE)
        assert_gone((await job.refresh()).progress["pid"])


async def test_a_cancel_kills_the_process(queue: Queue):
    async with Worker(queue, in_process(handlers.hang)) as worker:
        dropped = asyncio.ensure_future(told(worker, "cancelled"))
        job = await queue.add("crunch")
        async for event in queue.events(after="start"):
            if event.name == "progress":
                break
        await job.cancel()
        with pytest.raises(JobCancelled):
            await job.result(timeout=PATIENCE)
        await dropped
        assert_gone((await job.refresh()).progress["pid"])


async def test_a_shutdown_hands_the_job_back(queue: Queue):
    async with Worker(queue, in_process(handlers.hang), grace=0):
        job = await queue.add("crunch")
        async for event in queue.events(after="start"):
            if event.name == "progress":
                break
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made) == ("waiting", 0)
    assert_gone(seen.progress["pid"])


async def test_a_function_that_no_process_could_find_is_refused(queue: Queue):
    def local(job: Any) -> None: ...

    with pytest.raises(InvalidInput, match="top of a module"):
        Worker(queue, in_process(local))


async def told(worker: Worker, event: str) -> None:
    """Returns when the worker has said it."""
    heard = asyncio.Event()
    worker.on(event, lambda _: heard.set())
    await heard.wait()


def assert_gone(pid: int) -> None:
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("die", [handlers.die_and_leave_a_child, handlers.die_and_leave_a_daemon])
async def test_a_crash_is_noticed_though_something_that_the_handler_forked_lives_on(queue: Queue, die: Any):
    assert await reason(queue, die) == "WorkerCrashed: the handler's process ended: exit code 3"


async def test_a_cancel_kills_what_the_handler_has_started(queue: Queue, tmp_path: Path):
    held = tmp_path / "held"
    async with Worker(queue, in_process(handlers.hang_with_a_child)):
        job = await queue.add("crunch", str(held))
        async for event in queue.events(after="start"):
            if event.name == "progress":
                break
        await job.cancel()
        with held.open() as file:
            await asyncio.wait_for(asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX), PATIENCE)


async def test_a_copy_that_comes_back_from_the_handler_says_nothing(queue: Queue):
    async with Worker(queue, in_process(handlers.return_twice), concurrency=1):
        for data in ("fork", 1, 2):
            assert await (await queue.add("crunch", data)).result(timeout=PATIENCE) == data


async def test_what_outlives_its_handler_cannot_use_the_job_of_the_next(queue: Queue):
    async with Worker(queue, in_process(handlers.use_the_job_before), concurrency=1):
        first, second = await queue.add("crunch", 1), await queue.add("crunch", 2)
        assert await second.result(timeout=PATIENCE) == [first.id, first.id]
    assert (await second.refresh()).data == 2
    assert (await queue.history(second.id)).log == []


async def test_a_process_that_the_handler_forked_cannot_use_its_job(queue: Queue):
    assert await outcome(queue, handlers.use_the_job_in_a_fork) == 7


async def test_a_job_waits_for_its_process_where_no_more_can_be_started(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shortage, "TRY_EVERY", 0.001)
    loop = asyncio.get_running_loop()
    start = loop.subprocess_exec
    troubles = [errno.EAGAIN, errno.EMFILE, errno.ENOMEM]

    async def start_at_last(*args: Any, **options: Any) -> Any:
        if troubles:
            raise OSError(troubles.pop(), "no more of them")
        return await start(*args, **options)

    monkeypatch.setattr(loop, "subprocess_exec", start_at_last)
    assert (await outcome(queue, handlers.echo))["attempt"] == 1


async def test_an_idle_process_of_another_handler_makes_room(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    loop = asyncio.get_running_loop()
    start = loop.subprocess_exec
    started: list[asyncio.SubprocessTransport] = []

    async def start_if_alone(*args: Any, **options: Any) -> Any:
        if any(transport.get_returncode() is None for transport in started):
            raise OSError(errno.EAGAIN, "no more of them")
        transport, protocol = await start(*args, **options)
        started.append(transport)
        return transport, protocol

    monkeypatch.setattr(loop, "subprocess_exec", start_if_alone)
    async with Worker(queue, two_handlers()):
        pids = [await (await queue.add(name)).result(timeout=PATIENCE) for name in ("one", "two", "one")]
        assert pids == [transport.get_pid() for transport in started]
        for pid in pids[:-1]:
            assert_gone(pid)


async def test_a_process_that_cannot_be_watched_ends_and_its_job_waits_for_another(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shortage, "TRY_EVERY", 0.001)
    started = record_processes(monkeypatch)
    refuse_to_watch_the_first(monkeypatch)
    assert (await outcome(queue, handlers.echo))["attempt"] == 1
    unwatched, used = started
    assert (unwatched.returncode, used.returncode) == (-signal.SIGKILL, -signal.SIGKILL)
    assert_gone(unwatched.pid)


def record_processes(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    return started


def refuse_to_watch_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever this Python watches processes: a thread, or a file."""
    start, open_file = threading.Thread.start, os.pidfd_open
    refusals = [True]

    def start_thread(thread: threading.Thread) -> None:
        if thread.name.startswith("asyncio-waitpid") and refusals:
            refusals.pop()
            raise RuntimeError("can't start new thread")
        start(thread)

    def open_pidfd(pid: int, flags: int = 0) -> int:
        if pid != os.getpid() and refusals:
            refusals.pop()
            raise OSError(errno.EMFILE, "no more of them")
        return open_file(pid, flags)

    monkeypatch.setattr(threading.Thread, "start", start_thread)
    monkeypatch.setattr(os, "pidfd_open", open_pidfd)


async def test_all_processes_end_though_somebody_cancelled_all_tasks(queue: Queue):
    worker = Worker(queue, two_handlers())
    running = asyncio.create_task(worker.run())
    pids = [await (await queue.add(name)).result(timeout=PATIENCE) for name in ("one", "two")]
    for task in asyncio.all_tasks() - {running, asyncio.current_task()}:
        task.cancel()
    with pytest.raises(RopewayError, match="other code cancelled"):
        await running
    for pid in pids:
        assert_gone(pid)


def two_handlers() -> dict[str, Any]:
    return {"one": in_process(handlers.answer_pid), "two": in_process(handlers.answer_pid_too)}


async def test_the_end_of_a_handler_waits_for_what_its_thread_is_saying(queue: Queue):
    assert await outcome(queue, handlers.end_amid_a_report) == "the end"


async def test_a_crash_is_noticed_though_another_user_owns_what_the_handler_left(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
):
    def refuse(group: int, number: int) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(os, "killpg", refuse)
    died = await reason(queue, handlers.die_and_leave_a_daemon)
    assert died == "WorkerCrashed: the handler's process ended: exit code 3"


async def test_a_process_that_can_never_be_started_fails_the_job(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "FileNotFoundError" in await reason(queue, handlers.echo)


def test_a_process_ends_whose_worker_was_killed_before_it_read_the_last_request():
    ours, theirs = socket.socketpair()
    program = "from ropeway.worker.child import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(theirs.fileno()), handlers.__name__, "", "hang"],
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
    theirs.close()
    record = JobRecord("crunching", "a", "crunch", "null", "{}", "active", 0, 0, 0, token="t")
    ours.sendall(encode_line(Start(record, 1_000)))
    asked, _, _ = select.select([ours], [], [], PATIENCE)
    assert asked
    # What the kernel does with the sockets of a process that ends: the other side sees a reset, not an end.
    ours.close()
    try:
        assert process.wait(PATIENCE) == -signal.SIGKILL
    finally:
        process.kill()
