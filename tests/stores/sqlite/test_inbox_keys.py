"""Jobs with dedupe keys that go by the inbox."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from ropeway.job.dedupe import DedupeRule
from ropeway.job.extras import Extras
from ropeway.job.record import NewJob
from ropeway.store.values import Added, KeyHolder
from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.factories import QUEUE, new_job

from . import processes
from .conftest import NewStore
from .singly import add, ids, in_file

pytestmark = pytest.mark.usefixtures("never_by_itself")


def keyed(id: str, key: str = "key") -> NewJob:
    return new_job(id, extras=Extras(dedupe=DedupeRule(key)), is_fresh=True)


async def test_a_job_whose_key_is_free_does_not_touch_the_file(store: SQLiteStore, path: Path):
    await add(store, "plain")
    assert await store.add([[keyed("a")]]) == [[Added("a", "created")]]
    assert await store.add([[keyed("b", "other")]]) == [[Added("b", "created")]]
    assert in_file(path) == []

    assert await store.dedupe(QUEUE, "key") == KeyHolder("a")
    assert sorted(in_file(path)) == ["a", "b", "plain"]


async def test_a_key_in_the_ring_is_held(store: SQLiteStore, new_store: NewStore):
    await store.add([[keyed("a")]])
    await add(store, "plain")

    assert await new_store().add([[keyed("b")]]) == [[Added("a", "deduplicated")]]
    assert await ids(store) == ["a", "plain"]


async def test_of_adds_in_several_processes_one_takes_each_key(store: SQLiteStore, path: Path):
    script = """
    from ropeway.job.dedupe import DedupeRule
    from ropeway.job.extras import Extras
    store = new_store()
    created = 0
    say("ready")
    sys.stdin.readline()
    for number in range(100):
        job = new_job(f"{os.getpid()}-{number}", extras=Extras(dedupe=DedupeRule(f"key-{number}")), is_fresh=True)
        created += store.add_blocking([[job]])[0][0].verdict == "created"
    say(created)
    asyncio.run(store.close())
    """
    with processes.start(script, path) as one, processes.start(script, path) as other:
        for process in (one, other):
            assert processes.line(process) == "ready"
            processes.tell(process)
        created = [int(await asyncio.to_thread(processes.line, process)) for process in (one, other)]

    assert sum(created) == 100
    assert (await store.count(QUEUE))["waiting"] == 100


async def test_what_was_acknowledged_is_added_even_if_its_key_is_held_again(store: SQLiteStore, path: Path):
    # As after a power cut that undid the end of the job that held it.
    await store.add([[new_job("holder", extras=Extras(dedupe=DedupeRule("key")))]])
    await store.release_dedupe(QUEUE, "key")
    await store.add([[keyed("a"), keyed("b", "other")]])
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO held_key (queue, key, holder) SELECT id, 'key', 'holder' FROM queue")
    connection.close()

    assert await ids(store) == ["holder", "a", "b"]
    assert await store.dedupe(QUEUE, "key") == KeyHolder("holder")
    assert await store.dedupe(QUEUE, "other") == KeyHolder("b")
