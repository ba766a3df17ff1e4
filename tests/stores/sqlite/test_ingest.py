"""Jobs that go by the inbox: acknowledged without the file, and there for everybody who looks."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from ropeway.errors import StoreBusy, StoreClosed, StoreCorrupt, StoreRefused, StoreUnavailable
from ropeway.job.dedupe import DedupeRule
from ropeway.job.extras import Extras
from ropeway.job.record import NewJob
from ropeway.store.commands import Find
from ropeway.store.values import StallRules
from ropeway.stores.sqlite import SQLiteStore, inbox, ingest, opening, shared, watching, writer
from ropeway.testing.factories import QUEUE, new_job, new_jobs

from . import processes
from .conftest import NewStore
from .singly import add, ids, in_file

pytestmark = pytest.mark.usefixtures("never_by_itself")


async def test_adding_does_not_touch_the_file(store: SQLiteStore, path: Path):
    await add(store, "a")
    assert in_file(path) == []

    assert (await store.count(QUEUE))["waiting"] == 1
    assert in_file(path) == ["a"]


@pytest.mark.parametrize(
    "jobs",
    [
        [new_job("own")],
        [new_job("later", delay=1_000, is_fresh=True)],
        [new_job("later", due_at=2**42, is_fresh=True)],
        [new_job("throttled", extras=Extras(dedupe=DedupeRule("key", "throttle", 1_000)), is_fresh=True)],
        [new_job("short-lived", extras=Extras(start_within=1_000), is_fresh=True)],
        [new_job("large", data=f'"{"x" * inbox.MOST_AT_ONCE}"', is_fresh=True)],
        new_jobs(ingest.MOST_JOBS + 1, is_fresh=True),
    ],
    ids=["own id", "delayed", "due", "throttled", "with a deadline", "large", "many"],
)
async def test_other_jobs_go_straight_into_the_file(store: SQLiteStore, path: Path, jobs: list[NewJob]):
    await store.add([jobs])

    assert len(in_file(path)) == len(jobs)


async def test_order_is_that_of_the_adds(store: SQLiteStore):
    await add(store, "a", "b")
    await store.add([[new_job("c"), new_job("d")]])
    await add(store, "e")
    await store.add([[new_job("f")]])

    assert await ids(store) == ["a", "b", "c", "d", "e", "f"]


async def test_times_metrics_and_events_are_those_of_the_adds(store: SQLiteStore):
    for number, at in enumerate((1_000, 2_000, 61_000)):
        await store.add([[new_job(f"job-{number}", is_fresh=True)]], now=at)

    page = await store.find(Find(QUEUE, ("waiting",)))

    assert [job.created_at for job in page.jobs] == [1_000, 2_000, 61_000]
    assert [(metric.minute, metric.added) for metric in await store.metrics(QUEUE)] == [(0, 2), (60_000, 1)]
    assert [entry.entry.at for entry in (await store.events(QUEUE)).entries] == [2_000, 61_000]


async def test_adding_goes_on_while_another_process_writes(store: SQLiteStore, path: Path):
    with processes.writing(path):
        await add(store, "a", "b")
        await asyncio.to_thread(store.add_blocking, [[new_job("c", is_fresh=True)]])

    assert await ids(store) == ["a", "b", "c"]


LOOKS = {
    "count": ("store.count(QUEUE)", "'waiting': 1"),
    "get": ("store.get(QUEUE, ['a'])", "id='a'"),
    "find": ("store.find(Find(QUEUE, ('waiting',)))", "id='a'"),
    "events": ("store.events(QUEUE)", "('a', "),
    "metrics": ("store.metrics(QUEUE)", "added=1"),
    "claim": ("store.claim(claim_request())", "id='a'"),
    "queues": ("store.queues()", QUEUE),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_others_find_it_at_once(store: SQLiteStore, path: Path, look: str):
    call, expected = LOOKS[look]
    script = f"""
    from ropeway.store.commands import Find
    async def main():
        store = new_store()
        await store.count(QUEUE)
        say("ready")
        input()
        say(await {call})
        await store.close()
    asyncio.run(main())
    """
    with processes.start(script, path) as other:
        assert processes.line(other) == "ready"

        await add(store, "a")
        processes.tell(other)

        assert expected in processes.line(other)


async def test_a_killed_process_leaves_what_was_acknowledged(path: Path, new_store: NewStore):
    script = """
    store = new_store()
    number = 0
    while True:
        store.add_blocking([[new_job(f"job-{number}", is_fresh=True)]])
        say(number)
        number += 1
    """
    with processes.start(script, path) as adding:
        for _ in range(50):
            processes.line(adding)
        adding.kill()
        assert adding.stdout is not None
        acknowledged = 50 + len(adding.stdout.read().splitlines())

    found = {job.id for job in (await new_store().find(Find(QUEUE, ("waiting",), limit=100_000))).jobs}

    assert found >= {f"job-{number}" for number in range(acknowledged)}
    assert len(found) <= acknowledged + 1


async def test_a_process_that_was_stopped_in_its_turn_holds_up_nobody(store: SQLiteStore, path: Path):
    script = """
    import fcntl
    file = os.open(path + "-inbox", os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    say("holds")
    input()
    """
    with processes.start(script, path) as holder:
        assert processes.line(holder) == "holds"
        os.kill(holder.pid, signal.SIGSTOP)

        await add(store, "a")

        assert in_file(path) == ["a"]
        holder.kill()


async def test_it_comes_into_the_file_by_itself(path: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ingest, "INGEST_AFTER", 0.05)
    store = new_store()
    await add(store, "a")

    while in_file(path) != ["a"]:
        pass


async def test_it_comes_into_the_file_by_itself_after_others_wrote_for_too_long(
    path: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ingest, "INGEST_AFTER", 0.05)
    monkeypatch.setattr(ingest, "INGEST_AT", 1)
    store = new_store(patience=0.05)
    await store.open()
    with processes.writing(path):
        await add(store, "a")
        for _ in range(5):
            with pytest.raises(StoreBusy):
                await store.tick(QUEUE, StallRules())

    while in_file(path) != ["a"]:
        pass


async def test_many_are_taken_in_long_before_the_ring_is_full(store: SQLiteStore, path: Path):
    data = f'"{"x" * 4_000}"'
    enough = ingest.INGEST_AT // 4_000
    for number in range(enough + 1):
        await store.add([[new_job(f"job-{number}", data=data, is_fresh=True)]])

    assert len(in_file(path)) >= enough


async def test_adding_goes_on_through_a_ring_that_is_full_again_and_again(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ingest, "INGEST_AT", 2 * inbox.CAPACITY)
    data = f'"{"x" * 14_000}"'
    number = 2 * inbox.CAPACITY // 14_000
    await add(store, "first")
    for at in range(number):
        await store.add([[new_job(f"job-{at}", data=data, is_fresh=True)]])

    assert await ids(store, 1_000) == ["first", *(f"job-{at}" for at in range(number))]


async def test_a_clean_close_leaves_nothing_beside_the_file(store: SQLiteStore, path: Path, ring: Path):
    await add(store, "a")
    assert ring.exists()

    await store.close()

    assert [file.name for file in path.parent.iterdir()] == ["ropeway.db"]
    assert in_file(path) == ["a"]


async def test_a_close_while_another_thread_opens_it_leaves_nothing_either(
    path: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
):
    opening_it, closed = threading.Event(), threading.Event()

    def slowly(*arguments: Any, **options: Any) -> apsw.Connection:
        connection = opening.open_file(*arguments, **options)
        opening_it.set()
        closed.wait()
        return connection

    monkeypatch.setattr(shared, "open_file", slowly)
    store = new_store()
    adding = asyncio.create_task(asyncio.to_thread(store.add_blocking, [[new_job("a", is_fresh=True)]]))
    await asyncio.to_thread(opening_it.wait)
    await store.close()
    closed.set()
    with pytest.raises(StoreClosed):
        await adding

    while [file.name for file in path.parent.iterdir()] != ["ropeway.db"]:
        pass


async def test_an_answer_that_was_lost_makes_no_second_job(store: SQLiteStore):
    job = new_job("a", is_fresh=True)
    await store.add([[job]])
    await store.add([[job], [new_job("b", is_fresh=True)]])

    assert await ids(store) == ["a", "b"]
    assert (await store.count(QUEUE))["active"] == 2


@pytest.mark.parametrize("way", ["awaited", "here"])
async def test_after_a_failed_sync_jobs_go_into_the_file(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch, way: str
):
    await add(store, "before")
    doubtful = [[new_job("doubtful", is_fresh=True)]]

    def fail(_: int) -> None:
        raise OSError(5, "the disk is broken")

    with monkeypatch.context() as broken:
        broken.setattr(inbox, "sync_file", fail)
        with pytest.raises(StoreUnavailable, match="unknown"):
            await (store.add(doubtful) if way == "awaited" else asyncio.to_thread(store.add_blocking, doubtful))
    await add(store, "next")

    assert in_file(path) == ["before", "doubtful", "next"]
    await add(store, "after")
    assert "after" not in in_file(path), "all that was in doubt is on the disk"


async def test_without_an_inbox_adding_only_takes_longer(
    path: Path, ring: Path, new_store: NewStore, caplog: pytest.LogCaptureFixture
):
    ring.mkdir()
    store = new_store()

    with caplog.at_level(logging.WARNING, "ropeway"):
        await add(store, "a")
    await store.count(QUEUE)

    assert in_file(path) == ["a"]
    assert [record.getMessage() for record in caplog.records if "-inbox cannot be used" in record.getMessage()]


async def test_who_does_not_wait_for_the_disk_takes_in_what_others_left(path: Path, new_store: NewStore):
    durable, fast = new_store(), SQLiteStore.from_url(f"sqlite:///{path}?durability=fast")
    await add(durable, "a")
    await add(fast, "b")

    assert await ids(fast) == ["a", "b"]
    await fast.close()


async def test_an_inbox_that_is_deleted_while_in_use_stops_the_store(
    store: SQLiteStore, ring: Path, monkeypatch: pytest.MonkeyPatch
):
    await add(store, "a")
    ring.unlink()

    with pytest.raises(StoreRefused, match=r"-inbox file.*nothing more is written"):
        await store.tick(QUEUE, StallRules())
    monkeypatch.setattr(watching, "CHECK_EVERY", 0)
    with pytest.raises(StoreRefused):
        await store.add([[new_job("b", is_fresh=True)]])


async def test_a_copy_that_was_put_back_works(store: SQLiteStore, path: Path, new_store: NewStore):
    await add(store, "a")
    await store.count(QUEUE)
    processes.run("import apsw; apsw.Connection(path).execute('VACUUM INTO ?', (path + '-copy',))", path)
    await add(store, "b")
    await store.close()
    Path(f"{path}-copy").replace(path)

    store = new_store()
    await add(store, "c")

    assert await ids(store) == ["a", "c"]


async def test_a_damaged_file_is_refused_before_the_inbox_is_opened(path: Path, ring: Path, new_store: NewStore):
    opening.open_file(str(path)).close()
    contents = bytearray(path.read_bytes())
    contents[4096:] = bytes(len(contents) - 4096)
    path.write_bytes(contents)

    with pytest.raises(StoreCorrupt):
        await new_store().open()
    assert not ring.exists()


async def test_a_close_waits_not_long_for_other_writers(
    store: SQLiteStore, path: Path, ring: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "_LAST_PATIENCE", 0.01)
    await add(store, "a")
    with processes.writing(path):
        await store.close()

    assert ring.exists()
    later = store.sibling()
    assert await ids(later) == ["a"]
    await later.close()
    assert not ring.exists()


@pytest.mark.parametrize("base", ["KeyboardInterrupt", "TimeoutError"])
async def test_signals_at_any_moment_leave_it_in_order(store: SQLiteStore, path: Path, ring: Path, base: str):
    script = f"""
    from tests.storming import Storm
    store = new_store()
    begun = acknowledged = 0
    def act():
        global begun, acknowledged
        begun += 1
        store.add_blocking([[new_job(is_fresh=True)]])
        acknowledged += 1
    act()
    Storm({base}).interrupt(300, act)
    asyncio.run(store.close())
    say(f"{{acknowledged}} {{begun}}")
    """
    acknowledged, begun = processes.run(script, path).split()

    assert int(acknowledged) <= (await store.count(QUEUE))["waiting"] <= int(begun)
    await store.close()
    assert not ring.exists()


async def test_taking_in_by_itself_keeps_no_add_waiting(
    path: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ingest, "INGEST_AFTER", 0.01)
    store = new_store(patience=600)
    await add(store, "a")
    with processes.writing(path):
        for number in range(300):
            await add(store, f"job-{number}")

    assert (await store.count(QUEUE))["waiting"] == 301
