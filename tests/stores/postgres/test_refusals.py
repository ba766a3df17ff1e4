"""What a server answers instead of doing what it was asked: waited out, or raised with what to do about it."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import psycopg
import pytest

from ropeway.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
)
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import add, claim, is_gone, read
from ropeway.testing.factories import NOW, QUEUE, complete, fail, new_job, new_jobs
from tests.stores.databases import DatabaseProcess
from tests.stores.waiting import until

from .conftest import OpenStore, StartDatabase, connected, noticed


@pytest.fixture
def store(open_store: OpenStore, server: DatabaseProcess) -> PostgresStore:
    return open_store(server.url())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropeway.stores.postgres.pool.PATIENCE", 0.05)


def _fail_writes(server: DatabaseProcess, code: str, table: str, times: int | None = None) -> None:
    """From now on the server raises it for whatever writes into a table: as often as said, or until it is mended."""
    server.execute(
        f"""
        CREATE SEQUENCE IF NOT EXISTS troubles;
        CREATE OR REPLACE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('troubles') <= {times or 1_000_000} THEN
                RAISE EXCEPTION 'what the server says' USING ERRCODE = '{code}';
            END IF;
            RETURN NEW;
        END
        $$;
        CREATE TRIGGER trouble BEFORE INSERT ON ropeway.{table} FOR EACH ROW EXECUTE FUNCTION trouble();
        """
    )


def _mend(server: DatabaseProcess, table: str) -> None:
    server.execute(f"DROP TRIGGER trouble ON ropeway.{table}")


ROLLED_BACK = ["40001", "40P01", "55P03", "57014", "25P04"]


@pytest.mark.parametrize("code", ROLLED_BACK)
async def test_what_was_undone_is_done_again(store: PostgresStore, server: DatabaseProcess, code: str):
    await store.open()
    _fail_writes(server, code, "job", times=3)

    assert [job.id for job in await add(store, new_job("a"))] == ["a"]
    assert server.execute("SELECT last_value FROM troubles") == [(4,)]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("code", ROLLED_BACK)
async def test_what_is_undone_again_and_again_may_be_asked_later(
    store: PostgresStore, server: DatabaseProcess, code: str
):
    await store.open()
    _fail_writes(server, code, "job")
    with pytest.raises(StoreBusy, match="what the server says"):
        await add(store, new_job("a"))
    _mend(server, "job")

    assert [job.id for job in await add(store, new_job("a"))] == ["a"]


TOLD = {
    "53100": (StoreFull, "disk is full"),
    "53200": (StoreUnavailable, "no room"),
    "54000": (StoreFull, "limit"),
    "58030": (StoreUnavailable, "files"),
    "XX001": (StoreCorrupt, "damaged"),
    "42501": (StoreRefused, "grant"),
    "XX000": (StoreRefused, "please report it: XX000"),
}


@pytest.mark.parametrize("code", TOLD)
async def test_every_other_trouble_is_told_as_what_it_is(store: PostgresStore, server: DatabaseProcess, code: str):
    kind, what = TOLD[code]
    await store.open()
    _fail_writes(server, code, "job")

    with pytest.raises(StoreError, match=what) as told:
        await add(store, new_job("a"))
    assert type(told.value) is kind
    assert await is_gone(store, "a")


async def test_settling_on_a_full_disk_does_not_half_settle(store: PostgresStore, server: DatabaseProcess):
    await add(store, *new_jobs(3))
    jobs = await claim(store, 3)
    outcomes = [complete(jobs[0]), fail(jobs[1]), complete(jobs[2])]
    _fail_writes(server, "53100", "step")
    with pytest.raises(StoreFull):
        await store.settle(QUEUE, outcomes, now=NOW)
    assert {job.state for job in [await read(store, job.id) for job in jobs]} == {"active"}
    _mend(server, "step")

    settled = await store.settle(QUEUE, outcomes, now=NOW)
    assert [answer.verdict for answer in settled.answers] == ["done"] * 3
    assert (await store.count(QUEUE))["completed"] == 2


async def test_a_session_that_is_ended_by_the_administrator_is_one_lost_answer(
    store: PostgresStore, server: DatabaseProcess
):
    await add(store, new_job("a"))
    with server.session() as other:
        other.execute("BEGIN")
        other.execute("SELECT FROM ropeway.waiting FOR UPDATE")
        removing = asyncio.create_task(store.remove(QUEUE, ["a"]))
        waits = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        await until(lambda: server.execute(waits))
        with pytest.raises(StoreUnavailable, match="unknown"):
            await removing

    assert (await read(store, "a")).state == "waiting"


async def test_sessions_that_are_ended_while_nothing_is_under_way_are_not_noticed(
    store: PostgresStore, server: DatabaseProcess
):
    await add(store, new_job("a"))
    await connected(store)
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ropeway'")
    await noticed(store)

    assert (await read(store, "a")).state == "waiting"


async def test_a_server_without_room_for_connections_is_waited_for(
    start_database: StartDatabase, open_store: OpenStore
):
    server = start_database(max_connections="5", superuser_reserved_connections="0", max_wal_senders="0")
    store = open_store(server.url())
    await add(store, new_job("a"))
    await connected(store)
    with ExitStack() as others:
        first = others.enter_context(server.session())
        first.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ropeway'")
        await noticed(store)
        _take_all_connections(server, others)
        reading = asyncio.create_task(read(store, "a"))
        with pytest.raises(StoreUnavailable, match="too many clients"):
            await open_store(server.url()).open()

    assert (await reading).state == "waiting"


def _take_all_connections(server: DatabaseProcess, others: ExitStack) -> None:
    while True:
        try:
            others.enter_context(server.session())
        except psycopg.OperationalError:
            return


async def test_a_server_that_still_starts_is_waited_for(store: PostgresStore, server: DatabaseProcess):
    await add(store, new_job("a"))
    server.kill()
    await noticed(store)
    reading = asyncio.create_task(read(store, "a"))
    await asyncio.to_thread(server.start)

    assert (await reading).state == "waiting"


@pytest.mark.parametrize("what", ["standby", "default_transaction_read_only"])
async def test_a_server_that_takes_no_writes_is_refused(
    start_database: StartDatabase, open_store: OpenStore, what: str
):
    server = start_database()
    await open_store(server.url()).open()
    if what == "standby":
        server.stop()
        (server.folder / "data" / "standby.signal").touch()
        server.start()
    else:
        server.execute("ALTER ROLE postgres SET default_transaction_read_only = on")

    with pytest.raises(StoreReadOnly, match=f"{what}.*primary"):
        await open_store(server.url()).open()


async def test_a_server_that_is_read_only_for_a_while_is_waited_for(store: PostgresStore, server: DatabaseProcess):
    await add(store, new_job("a"))
    server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    server.execute("SELECT pg_reload_conf()")
    await until(lambda: server.execute("SHOW default_transaction_read_only") == [("on",)])
    claiming = asyncio.create_task(claim(store))
    await until(lambda: store._executor.resources().pool._failures)
    with server.session() as session:
        session.execute("SET default_transaction_read_only = off")
        session.execute("ALTER SYSTEM RESET default_transaction_read_only")
        session.execute("SELECT pg_reload_conf()")

    assert [job.id for job in await claiming] == ["a"]


@pytest.mark.parametrize("timeout", ["statement_timeout", "lock_timeout"])
async def test_a_timeout_of_the_administrator_is_waited_out(
    server: DatabaseProcess, open_store: OpenStore, timeout: str
):
    await add(open_store(server.url()), new_job("a"))
    server.execute(f"ALTER ROLE postgres SET {timeout} = '60ms'")
    store = open_store(server.url())
    await store.open()
    with server.session() as other:
        other.execute(f"SET {timeout} = 0")
        other.execute("BEGIN")
        other.execute("SELECT FROM ropeway.waiting FOR UPDATE")
        removing = asyncio.create_task(store.remove(QUEUE, ["a"]))
        said = server.folder / "server.log"
        await until(lambda: said.read_text().count(timeout.replace("_", " ")) >= 2)
        other.execute("COMMIT")

    assert [answer.verdict for answer in await removing] == ["done"]


async def test_a_session_that_was_idle_for_longer_than_the_administrator_likes_is_not_missed(
    server: DatabaseProcess, open_store: OpenStore
):
    await add(open_store(server.url()), new_job("a"))
    server.execute("ALTER ROLE postgres SET idle_session_timeout = '50ms'")
    store = open_store(server.url())
    await store.open()
    await noticed(store)

    assert (await read(store, "a")).state == "waiting"
