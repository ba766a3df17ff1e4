"""The functions of several releases side by side in one schema."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

import ropeway
from ropeway.errors import StoreRefused
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.inspecting import inspect
from ropeway.stores.postgres.statements import digest, functions
from ropeway.stores.postgres.target import Target
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, complete, new_job

from .conftest import Execute, OpenStore

OTHER = """
import asyncio, sys
from ropeway.store.url import connect
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, complete, new_job

async def main(url):
    store = connect(url)
    for line in sys.stdin:
        match line.split():
            case ["queues"]:
                print(*await store.queues(), flush=True)
            case ["add", id]:
                await add(store, new_job(id))
                print("added", flush=True)
            case ["run"]:
                jobs = await claim(store, 10)
                await store.settle(QUEUE, [complete(job) for job in jobs])
                print(*(job.id for job in jobs), flush=True)
    await store.close()

asyncio.run(main(sys.argv[1]))
"""
"""A process of another release: does what it reads, and prints an answer."""
CHANGES = [
    ("sql/queues.sql", "RETURNS text[]", "RETURNS TABLE (names text[], kind text)"),
    ("sql/queues.sql", "    )\n$$", "    ), 'new'::text\n$$"),
    ("verbs/look.py", "[(names,)] = await", "[(names, _)] = await"),
]
"""What the other release has changed: a function answers one column more, which cannot be done to one that exists."""

Tell: TypeAlias = Callable[[str], str]


@pytest.fixture
def other_release(tmp_path: Path, url: str) -> Iterator[Tell]:
    """Takes an order for a process of another release on the same store, answers what it printed."""
    package = tmp_path / "ropeway"
    shutil.copytree(Path(ropeway.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, old, new in CHANGES:
        file = package / "stores/postgres" / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, url],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to, back = process.stdin, process.stdout

    def tell(order: str) -> str:
        to.write(f"{order}\n")
        to.flush()
        return back.readline().strip()

    yield tell
    to.close()
    back.close()
    assert process.wait() == 0


async def test_processes_of_two_releases_work_on_the_same_jobs(store: PostgresStore, other_release: Tell):
    assert other_release("add first") == "added"
    await add(store, new_job("second"))

    assert other_release("run") == "first second"
    assert other_release("add third") == "added"
    [job] = await claim(store, 10)
    await store.settle(QUEUE, [complete(job)])

    assert job.id == "third"
    assert other_release("queues") == QUEUE
    assert await store.queues() == [QUEUE]
    assert (await store.count(QUEUE))["completed"] == 3


async def test_a_release_that_is_taken_back_finds_its_functions(
    store: PostgresStore, other_release: Tell, open_store: OpenStore, url: str
):
    await add(store, new_job("first"))
    await store.close()
    other_release("add second")

    again = open_store(f"{url}&migrate=off")

    assert [job.id for job in await claim(again, 10)] == ["first", "second"]


async def test_a_set_that_nobody_used_for_long_is_dropped_with_the_next_that_is_installed(
    store: PostgresStore, other_release: Tell, execute: Execute
):
    other_release("queues")
    execute("UPDATE ropeway.function_set SET used_at = 0")

    await store.open()

    [(sets, names)] = execute(
        "SELECT array_agg(digest), (SELECT array_agg(DISTINCT right(proname, 8)) FROM pg_proc"
        " WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'ropeway.job'::regclass))"
        " FROM ropeway.function_set"
    )
    assert sets == names == [digest()]
    assert other_release("add late") == "added", "it installs its functions again"


async def test_functions_that_are_used_are_noted(
    store: PostgresStore, open_store: OpenStore, url: str, execute: Execute
):
    await store.open()
    execute("UPDATE ropeway.function_set SET used_at = 0")
    await open_store(url).open()
    assert execute("SELECT used_at > 0 FROM ropeway.function_set") == [(True,)]

    execute("UPDATE ropeway.function_set SET used_at = 0")
    store._executor.resources().pool._record_use_at = 0
    await add(store, new_job())
    assert execute("SELECT used_at > 0 FROM ropeway.function_set") == [(True,)]


async def test_functions_that_were_dropped_are_not_installed_again_if_that_is_forbidden(
    open_store: OpenStore, url: str, execute: Execute
):
    store = open_store(f"{url}&migrate=off")
    await store.migrate()
    execute("DELETE FROM ropeway.function_set")

    with pytest.raises(StoreRefused, match="lacks the functions of this release of Ropeway: run `ropeway migrate`"):
        await open_store(f"{url}&migrate=off").open()

    await store.migrate()
    await add(open_store(f"{url}&migrate=off"), new_job())


async def test_functions_that_are_missing_are_a_migration(store: PostgresStore, url: str, execute: Execute):
    target = Target.from_url(url)
    await store.open()
    assert (await asyncio.to_thread(inspect, target)).migrations == []

    execute("DELETE FROM ropeway.function_set")
    found = await asyncio.to_thread(inspect, target)

    assert found.migrations == [functions(target.schema)]
    assert found.findings[-1].level == "warning"


def test_every_function_is_called_by_its_full_name():
    """PostgreSQL looks only when it is called."""
    assert re.findall(rf"ropeway\.(?!\w*_{digest()})\w+\(", functions()) == []
