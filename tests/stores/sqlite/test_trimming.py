"""What trim_events makes of entries of many events, of the round that is under way, and of damaged ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from ropeway.stores.sqlite import SQLiteStore, queues
from ropeway.testing.arrange import entries
from ropeway.testing.factories import NOW, QUEUE, new_jobs

from . import processes
from .test_group_commit import Gate, gathered


async def sizes(store: SQLiteStore) -> list[int]:
    return [len(entry.jobs) for entry in await entries(store)]


@pytest.fixture
async def batches(store: SQLiteStore) -> SQLiteStore:
    """Entries of five, six and seven jobs, of two events each: 36 in all."""
    for size in (5, 6, 7):
        await store.add([new_jobs(size)], now=NOW)
    return store


@pytest.mark.parametrize(
    ("keep", "left"),
    [(36, [5, 6, 7]), (35, [4, 6, 7]), (26, [6, 7]), (25, [5, 7]), (14, [7]), (13, [6]), (0, [1]), (-1, [1])],
)
async def test_jobs_go_while_more_events_remain(batches: SQLiteStore, keep: int, left: list[int]):
    await batches.trim_events(QUEUE, keep=keep)

    assert await sizes(batches) == left


async def test_what_is_gone_already_does_not_count(batches: SQLiteStore):
    await batches.trim_events(QUEUE, keep=26)

    await batches.trim_events(QUEUE, keep=26)

    assert await sizes(batches) == [6, 7]


async def test_a_place_from_before_everything_is_good_until_something_goes(batches: SQLiteStore):
    await batches.trim_events(QUEUE, keep=36)
    before = await batches.events(QUEUE, "0")
    await batches.trim_events(QUEUE, keep=35)
    after = await batches.events(QUEUE, "0")

    assert (before.gap, after.gap) == (False, True)


async def test_entries_of_the_same_round_go_too(store: SQLiteStore):
    async with Gate(store):
        first = asyncio.create_task(store.publish(QUEUE, "one", "{}"))
        second = asyncio.create_task(store.publish(QUEUE, "two", "{}"))
        trimming = asyncio.create_task(store.trim_events(QUEUE))
        third = asyncio.create_task(store.publish(QUEUE, "three", "{}"))
        await gathered(first, second, trimming, third)
    await asyncio.gather(first, second, trimming, third)

    assert [entry.detail and entry.detail["name"] for entry in await entries(store)] == ["two", "three"]


async def test_a_call_that_fails_after_it_in_the_round_brings_nothing_back(store: SQLiteStore):
    async with Gate(store):
        first = asyncio.create_task(store.publish(QUEUE, "one", "{}"))
        second = asyncio.create_task(store.publish(QUEUE, "two", "{}"))
        trimming = asyncio.create_task(store.trim_events(QUEUE))
        broken = asyncio.create_task(store.publish(QUEUE, "half a pair: \ud83d", "{}"))
        await gathered(first, second, trimming, broken)
    await asyncio.gather(first, second, trimming)

    with pytest.raises(UnicodeEncodeError):
        await broken
    assert [entry.detail and entry.detail["name"] for entry in await entries(store)] == ["two"]
    await store.publish(QUEUE, "three", "{}")
    assert len(await entries(store)) == 2


@pytest.mark.parametrize("body", [b"[]", b'["of a newer version", 1]', b"\xff"])
async def test_a_damaged_entry_goes_when_all_of_it_is_too_much(batches: SQLiteStore, path: Path, body: bytes):
    other = apsw.Connection(str(path))
    second = "(SELECT id FROM event ORDER BY id LIMIT 1 OFFSET 1)"
    other.execute(f"UPDATE event SET body = CAST(? AS TEXT) WHERE id = {second}", (body,))
    assert other.changes() == 1

    left: list[int] = []
    for keep in (26, 15, 14):
        await batches.trim_events(QUEUE, keep=keep)
        left.append(other.execute("SELECT count(*) FROM event").get)
    other.close()

    assert left == [2, 2, 1]
    assert await sizes(batches) == [7]


async def test_another_process_goes_on_where_the_stream_ends(store: SQLiteStore, path: Path):
    script = """
    async def main():
        store = new_store()
        await store.publish(QUEUE, "there", '{"rows": 2}')
        await store.trim_events(QUEUE, keep=1)
        await store.close()
    asyncio.run(main())
    """
    await store.publish(QUEUE, "here", "{}")
    cursor = (await store.events(QUEUE, "now")).cursor
    await asyncio.to_thread(processes.run, script, path)
    await store.publish(QUEUE, "here again", "{}")

    page = await store.events(QUEUE, cursor)

    assert page.gap
    assert [stored.entry.detail for stored in page.entries] == [
        {"name": "there", "data": {"rows": 2}},
        {"name": "here again", "data": {}},
    ]


async def test_events_that_are_published_where_nobody_works_do_not_pile_up(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(queues, "EVENTS_KEPT", 5)
    monkeypatch.setattr(queues, "TRIMMED_EVERY", 10)

    for number in range(40):
        await store.publish(QUEUE, "imported", "{}")
        if number % 2:
            await store.add([new_jobs(2)])

    assert 5 <= sum(max(1, 2 * size) for size in await sizes(store)) <= 5 + 10 + 5
