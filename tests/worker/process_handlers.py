"""Handlers that tests run in processes: a process finds them by the name of this module."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ropeway import JobFinished, ProcessJob, RopewayError, Unrecoverable


def answer_pid(job: ProcessJob) -> int:
    return os.getpid()


def answer_pid_too(job: ProcessJob) -> int:
    return os.getpid()


async def echo(job: ProcessJob) -> Any:
    return {"data": job.data, "attempt": job.attempt}


def report(job: ProcessJob) -> Any:
    job.progress(50)
    job.log("half way")
    job.update_data({"step": 2})
    return job.data


def end_amid_a_report(job: ProcessJob) -> str:
    """Returns when a thread has written a part of what it says, and the line takes no more for now."""
    line = int(sys.argv[1])
    thread = threading.Thread(target=job.log, args=("x" * 16_000_000,))
    thread.start()
    while thread.is_alive() and select.select([], [line], [], 0)[1]:
        pass
    return "the end"


def segfault(job: ProcessJob) -> None:
    ctypes.string_at(0)


def exit_at_once(job: ProcessJob) -> None:
    os._exit(3)


def raise_system_exit(job: ProcessJob) -> None:
    sys.exit(1)


def raise_unrecoverable(job: ProcessJob) -> None:
    raise Unrecoverable("no customer")


def raise_value_error(job: ProcessJob) -> None:
    raise ValueError("bad luck")


def answer_a_set(job: ProcessJob) -> object:
    return {1, 2}


def postpone_once(job: ProcessJob) -> str:
    if job.record.attempts_started == 1:
        job.postpone()
    return "second start"


def hang(job: ProcessJob) -> None:
    job.progress({"pid": os.getpid()})
    while True:
        time.sleep(60)


def die_and_leave_a_child(job: ProcessJob) -> None:
    if os.fork() == 0:
        time.sleep(600)
    os._exit(3)


def die_and_leave_a_daemon(job: ProcessJob) -> None:
    """One that nobody can find by its group."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(10)
        os._exit(0)
    os._exit(3)


def hang_with_a_child(job: ProcessJob) -> None:
    """As long as one of the two lives, the file is locked."""
    with Path(job.data).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            time.sleep(600)
        job.progress({"pid": child})
        os.waitpid(child, 0)


def return_twice(job: ProcessJob) -> Any:
    """If told to fork: the child comes back from its handler too."""
    if job.data == "fork":
        child = os.fork()
        if child == 0:
            return "from the child"
        os.waitpid(child, 0)
    return job.data


_stray: list[ProcessJob] = []


def use_the_job_before(job: ProcessJob) -> Any:
    """What something would do that the run before has left behind."""
    _stray.append(job)
    if len(_stray) == 1:
        return "first"
    said = []
    for use in (lambda: _stray[0].log("stray"), lambda: _stray[0].update_data("stray")):
        try:
            use()
        except JobFinished as finished:
            said.append(finished.job_id)
    return said


def use_the_job_in_a_fork(job: ProcessJob) -> int:
    child = os.fork()
    if child == 0:
        try:
            job.log("from the child")
        except RopewayError:
            os._exit(7)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
