"""A command line in a folder of its own, on a file of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from click.testing import CliRunner

from ropeway import Queue
from ropeway.cli.main import cli
from ropeway.job.record import JobRecord
from ropeway.job.states import State
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.testing.arrange import job_in
from ropeway.testing.factories import QUEUE

from .processes import Programs


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Ropeway(Protocol):
    def __call__(self, *arguments: str, given: str | bytes | None = None) -> Ran: ...


class Arrange:
    """What is in the store before a command, and what is there after it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def on_store(self, work: Callable[[Store], Awaitable[Any]]) -> Any:
        async def on_a_loop() -> Any:
            store = connect(self._url)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(on_a_loop())

    def on_queue(self, work: Callable[[Queue], Awaitable[Any]], name: str = QUEUE) -> Any:
        return self.on_store(lambda store: work(Queue(name, store=store)))

    def job(self, state: State = "waiting", **job: Any) -> JobRecord:
        """A job in that state, as of now; active ones before waiting ones."""

        async def arrange(store: Store) -> JobRecord:
            return await job_in(state, store, now=await store.clock(), **job)

        made: JobRecord = self.on_store(arrange)
        return made

    def state_of(self, id: str, queue: str = QUEUE) -> str | None:
        [record] = self.on_store(lambda store: store.get(queue, [id]))
        return record and str(record.state)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/ropeway.db"
    monkeypatch.setenv("ROPEWAY_URL", url)
    monkeypatch.chdir(tmp_path)
    return url


@pytest.fixture
def arrange(url: str) -> Arrange:
    return Arrange(url)


@pytest.fixture
def ropeway(url: str) -> Ropeway:
    """Runs a command in this process, without a terminal."""

    def run(*arguments: str, given: str | bytes | None = None) -> Ran:
        result = CliRunner().invoke(cli, arguments, input=given)
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def programs(url: str, tmp_path: Path) -> Iterator[Programs]:
    """Runs commands as programs of their own; none outlives the test."""
    programs = Programs(tmp_path)
    yield programs
    programs.end()
