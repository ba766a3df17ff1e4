"""Counting by priority walks past few jobs, whichever priority most of them have."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from ropeway.stores.sqlite import SQLiteStore, queries
from ropeway.stores.sqlite.transaction import Transaction
from ropeway.stores.sqlite.verbs import Read
from ropeway.testing.factories import QUEUE, new_job, new_jobs

from .singly import add, in_file


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (97, 1, 1, 1), (1, 50, 48, 1), (10, 1, 0, 100)])
async def test_the_numbers_are_right_however_far_it_walks(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, weights: tuple[int, ...]
):
    monkeypatch.setattr(queries, "COUNTED_AT_FIRST", 2)
    priorities = random.Random(7).choices(range(4), weights, k=500)
    await store.add([[new_job(priority=priority) for priority in priorities]])
    expected = Counter(priorities)

    for asked in ([0], [3], [1, 2], [3, 2, 1, 0, 3], [9, 0]):
        assert await store.count_waiting(QUEUE, asked) == [expected[priority] for priority in asked]


@pytest.mark.parametrize("round_number", [1, 9, 10, 11, 100, 101])
async def test_a_number_that_is_a_limit_is_right(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, round_number: int
):
    monkeypatch.setattr(queries, "COUNTED_AT_FIRST", 1)
    await store.add([new_jobs(round_number), new_jobs(round_number, priority=1)])

    assert await store.count_waiting(QUEUE, [0, 1]) == [round_number, round_number]


async def test_most_jobs_are_not_walked_past(store: SQLiteStore):
    """The steps of SQLite's machine are counted: about as many with forty thousand jobs as with two thousand."""

    async def steps() -> int:
        def counted(tx: Transaction) -> int:
            seen = 0

            def progress() -> bool:
                nonlocal seen
                seen += 1
                return False

            tx._connection.set_progress_handler(progress, 1)
            queries.count_waiting(tx, QUEUE, [0, 1])
            tx._connection.set_progress_handler(None)
            return seen

        return int(await store._read(Read(counted)))

    await store.add([new_jobs(2_000), new_jobs(3, priority=1), new_jobs(3, priority=2)])
    few = await steps()
    await store.add([new_jobs(38_000)])

    assert await steps() <= few * 1.2


@pytest.mark.usefixtures("never_by_itself")
async def test_jobs_in_the_inbox_count(store: SQLiteStore, path: Path):
    await add(store, "a", "b")
    assert in_file(path) == []

    assert await store.count_waiting(QUEUE, [0, 1]) == [2, 0]


@pytest.mark.usefixtures("never_by_itself")
async def test_jobs_in_the_inbox_have_a_log(store: SQLiteStore):
    await add(store, "a")
    page = await store.log(QUEUE, "a")
    await add(store, "b")
    cleared = await store.clear_log(QUEUE, "b")

    assert page is not None
    assert (cleared.verdict, cleared.state) == ("done", "waiting")


@pytest.mark.usefixtures("never_by_itself")
async def test_what_is_published_comes_after_the_jobs_in_the_inbox(store: SQLiteStore):
    await add(store, "a")
    await store.publish(QUEUE, "imported", "{}")
    await add(store, "b")

    page = await store.events(QUEUE)

    assert [stored.entry.what for stored in page.entries] == ["add", "published", "add"]
