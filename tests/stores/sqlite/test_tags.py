"""Tags are in a table of their own, which only jobs with tags have rows in."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from ropeway.job.states import STATES
from ropeway.store.commands import Find
from ropeway.stores.sqlite import SQLiteStore, finding
from ropeway.testing.arrange import claim
from ropeway.testing.factories import DAY, NOW, QUEUE, complete, new_job, retry


def rows(path: Path) -> list[tuple[str, str]]:
    """Ids and tags, of all that the table has."""
    connection = apsw.Connection(str(path))
    try:
        return list(connection.execute("SELECT id, tag FROM tag LEFT JOIN job USING (seq) ORDER BY id, number"))
    finally:
        connection.close()


async def ids(store: SQLiteStore, query: Find) -> list[str]:
    page = await store.find(query)
    found = [job.id for job in page.jobs]
    while page.next is not None:
        page = await store.find(Find(query.queue, query.states, query.name, query.limit, page.next, tag=query.tag))
        found += [job.id for job in page.jobs]
    return found


@pytest.mark.parametrize("few", [0, finding.FEW], ids=["from the states", "from the tags"])
@pytest.mark.parametrize("name", [None, "send"])
async def test_both_ways_to_find_a_tag_answer_the_same(
    store: SQLiteStore, few: int, name: str | None, monkeypatch: pytest.MonkeyPatch
):
    await store.add([[new_job(f"done-{n}", tags=("x",)) for n in range(3)]], now=NOW)
    for n, job in enumerate(await claim(store, 3)):
        await store.settle(QUEUE, [complete(job)], now=NOW + n)
    await store.add([[new_job(f"active-{n}", tags=("x",)) for n in range(3)]], now=NOW)
    await claim(store, 3)
    mixed = [new_job(f"{n}", priority=-n % 3, lifo=n % 2 == 0, tags=("x",) if n % 3 else ()) for n in range(9)]
    await store.add([mixed, [new_job(f"late-{n}", delay=DAY - n, tags=("x", "y")) for n in range(3)]], now=NOW)
    monkeypatch.setattr(finding, "FEW", few)

    assert await ids(store, Find(QUEUE, STATES, name, 2, tag="x")) == [
        "8", "2", "5", "4", "1", "7", "late-2", "late-1", "late-0",
        "active-0", "active-1", "active-2", "done-0", "done-1", "done-2",
    ]  # fmt: skip


async def test_a_job_without_tags_has_no_row(store: SQLiteStore, path: Path):
    await store.add([[new_job("a"), new_job("b", tags=("x", "y"))]], now=NOW)

    assert rows(path) == [("b", "x"), ("b", "y")]


async def test_they_follow_a_job_that_goes_behind_others(store: SQLiteStore, path: Path):
    await store.add([[new_job("a", tags=("x",)), new_job("b")]], now=NOW)
    [job] = await claim(store, 1)
    await store.settle(QUEUE, [retry(job)], now=NOW)

    assert rows(path) == [("a", "x")]


async def test_they_go_with_their_job(store: SQLiteStore, path: Path):
    await store.add([[new_job("a", tags=("x",)), new_job("b", tags=("x",))]], now=NOW)
    await store.remove(QUEUE, ["a"], now=NOW)

    assert rows(path) == [("b", "x")]
