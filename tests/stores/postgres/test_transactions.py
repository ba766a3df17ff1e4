"""Other people's transactions: they hold up nobody, and what they add appears when they commit."""

from __future__ import annotations

import psycopg
import pytest

from ropeway.stores.postgres import PostgresStore, floors
from ropeway.stores.postgres.adding import arguments_of
from ropeway.stores.postgres.floors import MANY
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import NOW, QUEUE, complete, new_job, new_jobs

from .conftest import Execute


def add_within(connection: psycopg.Connection, store: PostgresStore, id: str) -> None:
    places = ", ".join(["%s"] * 11)
    sql = f"SELECT * FROM {store._target.schema}.add({places})"
    connection.execute(sql.encode(), arguments_of([[new_job(id)]]))


async def test_an_open_transaction_that_added_a_job_holds_up_nobody(store: PostgresStore):
    await add(store, new_job("before"))
    with psycopg.connect(store._target.conninfo) as other:
        add_within(other, store, "within")

        await add(store, new_job("beside"))
        held = await claim(store, 10)
        await store.settle(QUEUE, [complete(job) for job in held], now=NOW)
        assert [job.id for job in held] == ["before", "beside"]
        assert (await store.count(QUEUE))["waiting"] == 0
        other.commit()

    assert (await store.count(QUEUE))["waiting"] == 1
    assert [job.id for job in await claim(store, 10)] == ["within"]


async def test_a_transaction_that_is_rolled_back_leaves_nothing(store: PostgresStore):
    await store.open()
    with psycopg.connect(store._target.conninfo) as other:
        add_within(other, store, "within")
        other.rollback()

    assert await store.get(QUEUE, ["within"]) == [None]
    assert (await store.events(QUEUE)).entries == []


async def test_a_reader_who_is_ahead_hears_of_what_was_committed_late(store: PostgresStore):
    await add(store, new_job("before"))
    with psycopg.connect(store._target.conninfo) as other:
        add_within(other, store, "within")
        await add(store, new_job("beside"))
        cursor = (await store.events(QUEUE, "now")).cursor
        other.commit()

    page = await store.events(QUEUE, cursor)

    assert [[id for id, _ in stored.entry.jobs] for stored in page.entries] == [["within"]]
    assert not page.gap


async def test_a_claim_does_not_pass_dead_jobs_again_and_again(store: PostgresStore, execute: Execute):
    await add(store, new_job("first"))
    with psycopg.connect(store._target.conninfo) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        for _ in range(2):
            await store.add([new_jobs(MANY)])
            while held := await claim(store, 1_000):
                await store.settle(QUEUE, [complete(job) for job in held])

        await claim(store, 1)

        floor = store._floors._floors[QUEUE, None]
        assert floor.is_needed
        await add(store, new_job("last"))
        assert [job.id for job in await claim(store, 1)] == ["last"]


async def test_whoever_takes_other_names_begins_where_he_was(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(floors, "MANY", -1)
    await add(store, new_job("first", name="read"), new_job("second", name="send"), new_job("third", name="send"))

    assert [job.id for job in await claim(store, 2, names=("send",))] == ["second", "third"]
    assert [job.id for job in await claim(store, 2, names=("read",))] == ["first"]
