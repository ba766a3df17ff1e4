"""What the jobs of the scenarios do. The name of a job picks its handler, its data says for how long.

Each writes its start and its end into the diary, and returns the token it ran under.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from ropeway import Job, SyncJob, in_process
from ropeway.worker.child import ProcessJob

from .diary import Diary

LOOK = 0.005
"""Seconds between two looks at a gate."""


class ScenarioHandlers:
    def __init__(self, diary: Diary) -> None:
        self._diary = diary

    def by_name(self) -> dict[str, Any]:
        return {
            "nap": self.nap,
            "hold": self.hold,
            "hold-in-thread": self.hold_in_thread,
            "block": self.block,
            "block-after": self.block_after,
            "block-in-c-after": self.block_in_c_after,
            "touch": self.touch,
            "end-a-fork": self.end_a_fork,
            "listen-in-thread": self.listen_in_thread,
            "take-all-files": self.take_all_files,
            # What the kernel does to a process that has taken too much memory.
            "out-of-memory": self._poison(die_at_once),
            "segfault": self._poison(lambda: ctypes.string_at(0)),
            "exit": self._poison(lambda: os._exit(0)),
            "hold-in-process": in_process(hold_in_process),
        }

    async def nap(self, job: Job) -> str:
        with self._written_down(job):
            await asyncio.sleep(job.data)
        return job.token

    async def hold(self, job: Job) -> str:
        """Until its gate is open."""
        with self._written_down(job):
            while not is_open(job):  # noqa: ASYNC110 - it is opened by another process
                await asyncio.sleep(LOOK)
        return job.token

    async def block(self, job: Job) -> str:
        """As `hold`, and nothing else comes round on its loop meanwhile."""
        with self._written_down(job):
            while not is_open(job):
                time.sleep(LOOK)  # noqa: ASYNC251 - that is the point
        return job.token

    async def block_after(self, job: Job) -> str:
        """As `block`, once everything that could begin beside it has begun."""
        await asyncio.sleep(0.1)
        return await self.block(job)

    async def block_in_c_after(self, job: Job) -> str:
        """As `block-after`, in one call: Python has no moment for signal handlers while its process lives."""
        await asyncio.sleep(0.1)
        with self._written_down(job):
            os.system(f"while [ ! -e '{job.data}' ] && kill -0 $PPID; do sleep {LOOK}; done")  # noqa: ASYNC221,S605
        return job.token

    async def touch(self, job: Job) -> str:
        """Ends without waiting for anything."""
        with self._written_down(job):
            return job.token

    def hold_in_thread(self, job: SyncJob) -> str:
        """As `hold`, and deaf to its end."""
        with self._written_down(job):
            while not is_open(job):
                time.sleep(LOOK)
        return job.token

    async def end_a_fork(self, job: Job) -> int | None:
        """Forks its process as multiprocessing does, and ends the child by SIGTERM; answers how that ended."""
        forking = multiprocessing.get_context("fork")
        begun = forking.Event()
        fork = forking.Process(target=_wait_for_a_signal, args=(begun,))
        fork.start()
        begun.wait()
        fork.terminate()
        while fork.is_alive():  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(LOOK)
        return fork.exitcode

    def listen_in_thread(self, job: SyncJob) -> str:
        """Until it is told to stop."""
        self._diary.write("start", job)
        while not job.cancelled:
            time.sleep(LOOK)
        self._diary.write("stopped", job)
        return job.token

    async def take_all_files(self, job: Job) -> str:
        """As `hold`, while its process can open no file more."""
        taken: list[int] = []
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            try:
                return await self.hold(job)
            finally:
                for file in taken:
                    os.close(file)

    def _poison(self, die: Callable[[], object]) -> Callable[[Any], Any]:
        async def take(job: Job) -> None:
            self._diary.write("start", job)
            die()

        return take

    @contextmanager
    def _written_down(self, job: Job | SyncJob) -> Iterator[None]:
        self._diary.write("start", job)
        try:
            yield
        except asyncio.CancelledError:
            self._diary.write("stopped", job)
            raise
        self._diary.write("end", job)


def _wait_for_a_signal(begun: Event) -> None:
    begun.set()
    signal.pause()


def hold_in_process(job: ProcessJob) -> int:
    """As `hold`; while its process lives, the file `gate-lock` is locked."""
    with Path(f"{job.data}-lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        while not is_open(job):
            time.sleep(LOOK)
    return job.record.attempts_started


def is_open(job: Job | SyncJob | ProcessJob) -> bool:
    """A gate is a file, named in the job's data; with `.1` after its name it lets only the first run pass."""
    return Path(job.data).exists() or Path(f"{job.data}.{job.record.attempts_started}").exists()


def die_at_once() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
