"""Families cost as little as they can, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from ropeway.job.retention import Retention
from ropeway.stores.sqlite import SQLiteStore
from ropeway.stores.sqlite.transaction import Transaction
from ropeway.testing.arrange import claim, read
from ropeway.testing.factories import NOW, QUEUE, complete, fail, new_flow, new_job, retry


class Counting:
    """Counts the statements that transactions run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran = 0
        for method in ("run", "run_many", "change", "get"):
            monkeypatch.setattr(Transaction, method, self._counted(getattr(Transaction, method)))

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def run(tx: Transaction, *arguments: Any) -> Any:
            self.ran += 1
            return method(tx, *arguments)

        return run

    async def of(self, call: Awaitable[object]) -> int:
        before = self.ran
        await call
        return self.ran - before


def rows(path: Path) -> tuple[int, int, int]:
    """How many families and links there are, and children that name their family themselves."""
    connection = apsw.Connection(str(path))
    try:
        sql = "SELECT (SELECT count(*) FROM family), (SELECT count(*) FROM link), (SELECT count(child_of) FROM job)"
        [(families, links, unlinked)] = connection.execute(sql)
        return int(families), int(links), int(unlinked)
    finally:
        connection.close()


async def test_a_batch_of_children_takes_as_many_statements_as_one(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    few = new_flow(new_job("few"), *(new_job() for _ in range(3)))
    many = new_flow(new_job("many"), *(new_job() for _ in range(1_001)))
    counting = Counting(monkeypatch)
    await store.remove(QUEUE, [(await store.add([[new_job()]], now=NOW))[0][0].id], now=NOW)
    assert await counting.of(store.add([many], now=NOW)) == await counting.of(store.add([few], now=NOW))

    jobs = await claim(store, 1_000)
    thousand = await counting.of(store.settle(QUEUE, [complete(job) for job in jobs], now=NOW))
    [one, *_] = await claim(store, 1)
    assert await counting.of(store.settle(QUEUE, [complete(one)], now=NOW)) >= thousand
    assert (await read(store, "many")).state == "waiting"


async def test_plain_jobs_run_no_statement_for_families(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    counting = Counting(monkeypatch)

    async def life() -> None:
        await store.add([[new_job(), new_job()]], now=NOW)
        one, other = await claim(store, 2)
        await store.settle(QUEUE, [complete(one, keep=Retention(count=0)), retry(other)], now=NOW)
        [other] = await claim(store, 1)
        await store.settle(QUEUE, [fail(other, keep=Retention(count=0))], now=NOW)

    await life()
    before = await counting.of(life())
    await store.add([new_flow(new_job("p", tags=("x",)), new_job("a", queue="elsewhere"))], now=NOW)

    assert await counting.of(life()) == before


async def test_what_is_removed_leaves_no_rows(store: SQLiteStore, path: Path):
    root, middle = new_flow(new_job("root"), new_job("middle"))
    await store.add([[root, *new_flow(middle, new_job("leaf"))]], now=NOW)
    assert rows(path) == (2, 0, 2)

    await store.remove(QUEUE, ["leaf"], now=NOW)
    assert rows(path) == (2, 0, 1)
    await store.remove(QUEUE, ["root", "middle"], now=NOW)
    assert rows(path) == (0, 0, 0)


async def test_a_child_gets_its_link_when_it_ends(store: SQLiteStore, path: Path):
    await store.add([new_flow(new_job("p"), new_job("a"), new_job("b"), new_job("c"))], now=NOW)
    [a, b] = await claim(store, 2)
    await store.settle(QUEUE, [complete(b, keep=Retention(count=0))], now=NOW)

    assert rows(path) == (1, 1, 2)
    found = await store.children(QUEUE, "p")
    assert found is not None
    assert [(child.id, child.state) for child in found.children] == [
        ("a", "pending"), ("b", "completed"), ("c", "pending"),
    ]  # fmt: skip
    await store.settle(QUEUE, [complete(a)], now=NOW)
    await store.remove(QUEUE, ["p"], now=NOW)
    assert rows(path) == (0, 0, 0)


@pytest.mark.parametrize("id", ["new", "old"])
async def test_new_families_do_not_meet_children_of_old_ones(store: SQLiteStore, id: str):
    """Their numbers come again."""
    await store.add([new_flow(new_job("old"), new_job("a"))], now=NOW)
    await store.remove(QUEUE, ["old"], now=NOW)
    await store.add([new_flow(new_job(id), new_job("b"))], now=NOW)

    [a] = await claim(store, 1)
    await store.settle(QUEUE, [complete(a)], now=NOW)

    assert a.id == "a"
    assert (await read(store, id)).state == "waiting-children"


async def test_an_id_that_exists_undoes_the_parent(store: SQLiteStore):
    """The parent is inserted before its children, by another statement."""
    await store.add([[new_job("a")]], now=NOW)
    children = [new_job("b"), new_job("a"), new_job("c")]

    [added] = await store.add([new_flow(new_job("p"), *children)], now=NOW)

    assert [one.verdict for one in added] == ["skipped", "skipped", "conflict", "skipped"]
    assert sum((await store.count(QUEUE)).values()) == 1
