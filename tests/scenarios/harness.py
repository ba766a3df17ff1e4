"""Real processes, and what can be known about them."""

from __future__ import annotations

import asyncio
import fcntl
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from ropeway import Queue
from ropeway.job.ids import new_token
from ropeway.store.values import Record
from tests.patience import PATIENCE

from .diary import DiaryReader, Line
from .worker_app import ASK, TOLD, Orders

ROOT: Final = Path(__file__).parents[2]
LOOK: Final = 0.01


async def until(condition: Callable[[], Any], what: str = "the condition", timeout: float = PATIENCE) -> Any:
    """Waits until the condition, awaited if need be, gives something true, and answers that."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout:g} s"
        await asyncio.sleep(LOOK)


def show(what: str, figure: float, unit: str = "") -> None:
    """A measured figure, for those who run with `-rP`."""
    print(f"{what}: {figure:.4g} {unit}".rstrip())  # noqa: T201


class AppProcess:
    """A process of one of the apps here, with its diary and what it wrote to stderr."""

    def __init__(self, folder: Path, number: int, app: str, *arguments: str) -> None:
        self._diary = DiaryReader(diary_path(folder, number))
        self._said = folder / f"{number}.stderr"
        command = [sys.executable, "-m", f"tests.scenarios.{app}", *arguments]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
        self.pid = self._process.pid

    def __repr__(self) -> str:
        return f"<process {self.pid}>"

    @property
    def lines(self) -> list[Line]:
        return self._diary.lines()

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def errors(self) -> list[str]:
        """What it said that is worse than a warning of its log, such as of a slow machine."""
        return [line for line in self.said.splitlines() if not line.startswith("WARNING")]

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def wrote(self, what: str, job_id: str | None = None) -> list[Line]:
        return [line for line in self.lines if line.what == what and job_id in (None, line.job)]

    def running(self) -> dict[str, Line]:
        """The starts, by job, of which no end is written."""
        begun: dict[str, Line] = {}
        for line in self.lines:
            if line.what == "start":
                begun[line.job] = line
            elif line.what in ("end", "stopped"):
                begun.pop(line.job, None)
        return begun

    def kill(self) -> float:
        """Kills it as `kill -9` does; answers when."""
        self.signal(signal.SIGKILL)
        now = time.monotonic()
        self._process.wait()
        return now

    def stop(self) -> float:
        """SIGSTOP; answers when, after every thread of it stands still."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)
        return time.monotonic()

    def go_on(self) -> float:
        now = time.monotonic()
        self.signal(signal.SIGCONT)
        return now

    def terminate(self) -> float:
        self.signal(signal.SIGTERM)
        return time.monotonic()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def exit(self, timeout: float = PATIENCE) -> int:
        """Waits for its end, and answers its exit code."""
        await until(lambda: self.exit_code is not None, f"the end of {self}", timeout)
        assert self.exit_code is not None
        return self.exit_code

    async def ready(self) -> Self:
        await until(lambda: self.wrote("ready") or self._gone(), f"the start of {self}")
        return self

    async def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Waits until its diary shows it; if that does not come, the error says what it did instead."""
        try:
            return await until(condition, f"{what} of {self}")
        except AssertionError as late:
            raise AssertionError(f"{late}: {await self._explain()}") from None

    async def _explain(self) -> str:
        """Of a worker: where it is now, and what it said."""
        if self.exit_code is not None:
            return f"it ended with {self.exit_code}, after {self.lines[-3:]} and\n{self.said[-5_000:]}"
        self.signal(ASK)
        with suppress(AssertionError):
            await until(lambda: TOLD in self.said, timeout=5)
        return f"it lives, after {self.lines[-3:]} and\n{self.said[-30_000:]}"

    def end(self) -> None:
        if self.exit_code is None:
            self._process.kill()
            self._process.wait()

    def cpu_seconds(self) -> float:
        """What a process that still runs has used of the processor."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _gone(self) -> bool:
        assert self.exit_code is None, f"{self} ended with {self.exit_code}: {self.said[-2000:]}"
        return False


def diary_path(folder: Path, number: int) -> Path:
    return folder / f"{number}.diary"


class Gate:
    """What handlers named `hold` wait for. Its text is what their jobs take as data."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def open(self, start: int | None = None) -> None:
        """For every run, or for the one that is the job's so-many-th start."""
        Path(f"{self._path}.{start}" if start else self._path).touch()

    def is_guarded(self) -> bool:
        """Whether a process of `hold-in-process` stands before it, and lives."""
        with Path(f"{self._path}-lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False


async def stop_between_calls(worker: AppProcess, queue: Queue) -> float:
    """Stops a worker at a moment when it does not stand in the way of all others; answers when.

    One that is stopped with a store's own lock in its hand, such as that of a SQLite file, stops everybody.
    """
    while True:
        at = worker.stop()
        try:
            # Soon enough that nobody's lock has run out meanwhile.
            async with asyncio.timeout(0.3):
                await _write(queue)
            return at
        except TimeoutError:
            worker.go_on()
            await _write(queue)


async def _write(queue: Queue) -> None:
    await queue.store.remember(Record("probe", new_token(), "1"), lasting=1)


class Fleet:
    """The processes of one scenario, the ended ones too; none outlives it."""

    def __init__(self, url: str, queue: str, folder: Path) -> None:
        self._url = url
        self._queue = queue
        self._folder = folder
        self.workers: list[AppProcess] = []
        self._producers: list[AppProcess] = []

    def start(self, *, orders: dict[str, Any] | None = None, **options: Any) -> AppProcess:
        """`options` are those of `Worker`; `orders` those of `worker_app`."""
        number = self._next_number()
        diary = str(diary_path(self._folder, number))
        full = Orders(self._url, self._queue, diary, options, **(orders or {}))
        worker = AppProcess(self._folder, number, "worker_app", msgspec.json.encode(full).decode())
        self.workers.append(worker)
        return worker

    def start_producer(self, name: str) -> AppProcess:
        number = self._next_number()
        diary = str(diary_path(self._folder, number))
        producer = AppProcess(self._folder, number, "producer_app", self._url, self._queue, diary, name)
        self._producers.append(producer)
        return producer

    def _next_number(self) -> int:
        return len(self.workers) + len(self._producers)

    async def start_many(self, number: int, **options: Any) -> list[AppProcess]:
        """Answers when all of them work."""
        workers = [self.start(**options) for _ in range(number)]
        return [await worker.ready() for worker in workers]

    def lines(self, what: str | None = None, job_id: str | None = None) -> list[Line]:
        """What all diaries say, in the order of time."""
        found = (line for worker in self.workers for line in worker.lines)
        return sorted(
            (line for line in found if what in (None, line.what) and job_id in (None, line.job)),
            key=lambda line: line.at,
        )

    def starts(self, job_id: str) -> list[Line]:
        return self.lines("start", job_id)

    async def running_in(self, job_id: str) -> AppProcess:
        """Waits until a handler of the job runs, and answers the process that it runs in."""

        def holders() -> list[AppProcess]:
            return [worker for worker in self.workers if worker.exit_code is None and job_id in worker.running()]

        holder: AppProcess
        [holder] = await until(holders, f"the start of {job_id}")
        return holder

    def close(self) -> None:
        for process in [*self.workers, *self._producers]:
            process.end()
