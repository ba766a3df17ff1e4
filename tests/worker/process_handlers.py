"""Handlers that tests run in processes: a process finds them by the name of this module."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

from ropeway import ProcessJob, Unrecoverable


def answer_pid(job: ProcessJob) -> int:
    return os.getpid()


async def echo(job: ProcessJob) -> Any:
    return {"data": job.data, "attempt": job.attempt}


def report(job: ProcessJob) -> Any:
    job.progress(50)
    job.log("half way")
    job.update_data({"step": 2})
    return job.data


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
