"""Schemas that are missing, partly there, older or newer, and users without the rights to use them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from ropeway import Queue
from ropeway.errors import StoreCorrupt, StoreRefused, StoreUnavailable, StoreVersion
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.statements import function, migrations
from ropeway.testing.arrange import add, claim
from ropeway.testing.conformance.listen import calm, hears
from ropeway.testing.factories import QUEUE, complete, new_job
from tests.stores.databases import DatabaseProcess

from .conftest import OpenStore

NEWEST = len(migrations())


@pytest.fixture
async def schema(server: DatabaseProcess, open_store: OpenStore) -> DatabaseProcess:
    """A server that has one."""
    await open_store(server.url()).open()
    return server


async def test_a_schema_is_not_made_if_that_is_forbidden(server: DatabaseProcess, open_store: OpenStore):
    with pytest.raises(StoreRefused, match="has no schema 'ropeway': run `ropeway migrate`"):
        await open_store(server.url(migrate="off")).open()
    assert server.execute("SELECT to_regnamespace('ropeway')") == [(None,)]


@pytest.mark.parametrize("name", ["user", "order", "all"])
async def test_a_schema_may_be_named_by_a_word_of_sql(name: str, open_store: OpenStore, server: DatabaseProcess):
    store = open_store(server.url(name))
    await add(store, new_job("a"))
    listener = store.listen("events", [QUEUE])
    assert await hears(listener), "the server knows of it"
    await calm(listener)

    async with Queue(QUEUE, store=store).transaction() as tx:
        await Queue(QUEUE, store=store).add("send", tx=tx)

    assert await hears(listener)
    assert len(await claim(store, 5)) == 2
    listener.close()


async def test_a_schema_that_was_made_for_a_user_needs_no_right_to_make_others(
    server: DatabaseProcess, open_store: OpenStore
):
    server.execute("CREATE ROLE app LOGIN; CREATE SCHEMA mine AUTHORIZATION app")

    await add(open_store(server.url("mine", user="app")), new_job())

    assert server.execute("SELECT count(*) FROM mine.job") == [(1,)]


async def test_readers_do_not_make_a_schema(server: DatabaseProcess):
    store = PostgresStore.from_url(server.url(), create=False)
    with pytest.raises(StoreUnavailable, match="no schema 'ropeway'"):
        await store.count(QUEUE)
    await store.close()


async def test_an_older_schema_is_not_migrated_if_that_is_forbidden(schema: DatabaseProcess, open_store: OpenStore):
    schema.execute("UPDATE ropeway.version SET number = 0")
    with pytest.raises(StoreRefused, match=f"has version 0 of {NEWEST}: run `ropeway migrate`"):
        await open_store(schema.url(migrate="off")).open()


async def test_a_newer_schema_is_refused(schema: DatabaseProcess, open_store: OpenStore):
    schema.execute("UPDATE ropeway.version SET number = 99, oldest = 98")
    with pytest.raises(
        StoreVersion, match=f"version 99, which needs a Ropeway that knows 98, .*{NEWEST}: upgrade Ropeway"
    ):
        await open_store(schema.url()).add([[new_job()]])


async def test_a_newer_schema_that_older_releases_can_use_is_used(schema: DatabaseProcess, open_store: OpenStore):
    schema.execute("UPDATE ropeway.version SET number = 99; DELETE FROM ropeway.function_set")

    await add(open_store(schema.url()), new_job())

    assert schema.execute("SELECT number FROM ropeway.version") == [(99,)]


@pytest.mark.parametrize(
    "part", ["TABLE ropeway.job CASCADE", f"FUNCTION {function('add', 'ropeway')}", "TABLE ropeway.step CASCADE"]
)
async def test_a_schema_that_lacks_a_part_says_so(schema: DatabaseProcess, open_store: OpenStore, part: str):
    schema.execute(f"DROP {part}")
    with pytest.raises(StoreRefused, match=r"not whole.*ropeway migrate"):
        await open_store(schema.url()).add([[new_job()]])


async def test_a_schema_that_somebody_made_before_is_filled(server: DatabaseProcess, open_store: OpenStore):
    server.execute("CREATE SCHEMA ropeway")
    await add(open_store(server.url()), new_job())


async def test_of_many_that_open_an_empty_server_at_once_one_makes_the_schema(
    server: DatabaseProcess, open_store: OpenStore
):
    await asyncio.gather(*(open_store(server.url()).open() for _ in range(30)))

    assert server.execute("SELECT number FROM ropeway.version") == [(NEWEST,)]
    assert "ERROR" not in (server.folder / "server.log").read_text()


NewUser: TypeAlias = Callable[[str], str]


@pytest.fixture
def new_user(server: DatabaseProcess) -> NewUser:
    """Takes what it is granted, answers its URL."""

    def new(grants: str) -> str:
        server.execute("CREATE ROLE mail LOGIN")
        for grant in filter(None, grants.split(";")):
            server.execute(f"GRANT {grant} TO mail")
        return server.url(user="mail")

    return new


async def test_a_user_who_may_not_make_a_schema_is_told_who_can(new_user: NewUser, open_store: OpenStore):
    with pytest.raises(
        StoreRefused, match=r"may not make or migrate.*run `ropeway migrate` as one who may.*permission"
    ):
        await open_store(new_user("")).open()


EVERYTHING = (
    "USAGE ON SCHEMA ropeway;"
    "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ropeway;"
    "USAGE ON ALL SEQUENCES IN SCHEMA ropeway"
)
LESS = {
    "": "schema ropeway",
    "USAGE ON SCHEMA ropeway": "table version",
    "USAGE ON SCHEMA ropeway;SELECT ON ALL TABLES IN SCHEMA ropeway": "table queue",
    EVERYTHING.rpartition(";")[0]: "sequence job_seq",
}


@pytest.mark.usefixtures("schema")
@pytest.mark.parametrize("grants", LESS)
async def test_a_user_without_a_right_is_told_which_one_is_missing(
    new_user: NewUser, open_store: OpenStore, grants: str
):
    with pytest.raises(StoreRefused, match=f"grant it.*{LESS[grants]}"):
        await open_store(new_user(grants)).add([[new_job()]])


@pytest.mark.usefixtures("schema")
async def test_these_rights_are_enough(new_user: NewUser, open_store: OpenStore):
    store = open_store(new_user(EVERYTHING))
    await add(store, new_job("a"))
    [job] = await claim(store)
    await store.settle(QUEUE, [complete(job)])

    assert (await store.count(QUEUE))["completed"] == 1


@pytest.mark.parametrize("ids", [["astray"], ["astray", "there"]])
async def test_a_job_that_stands_nowhere_is_told_of(schema: DatabaseProcess, open_store: OpenStore, ids: list[str]):
    store = open_store(schema.url())
    await add(store, new_job("astray"), new_job("there"))
    schema.execute("DELETE FROM ropeway.waiting WHERE id = 'astray'")

    with pytest.raises(StoreCorrupt, match="job 'astray' has a row in the table job and none"):
        await store.cancel(QUEUE, ids)
    assert [answer.verdict for answer in await store.cancel(QUEUE, ["there"])] == ["done"]


LOG_VERBS: dict[str, Callable[[PostgresStore], Awaitable[object]]] = {
    "history": lambda store: store.history(QUEUE, "astray"),
    "log": lambda store: store.log(QUEUE, "astray"),
    "clear_log": lambda store: store.clear_log(QUEUE, "astray"),
}


@pytest.mark.parametrize("verb", LOG_VERBS)
async def test_the_log_of_a_job_that_stands_nowhere_is_told_of(
    schema: DatabaseProcess, open_store: OpenStore, verb: str
):
    store = open_store(schema.url())
    await add(store, new_job("astray"))
    schema.execute("DELETE FROM ropeway.waiting")

    with pytest.raises(StoreCorrupt, match="job 'astray' has a row in the table job and none"):
        await LOG_VERBS[verb](store)
