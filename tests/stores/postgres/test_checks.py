"""What is asked of a server before jobs are trusted to it, and its schema."""

from __future__ import annotations

import asyncio
import signal

import pytest

from ropeway import Queue
from ropeway.errors import InvalidOption, StoreReadOnly, StoreRefused, StoreUnavailable
from ropeway.store.url import connect
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.link import Statement
from ropeway.stores.postgres.statements import migrations
from ropeway.stores.postgres.target import Target
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.factories import QUEUE, new_job

from .conftest import Execute, OpenStore, StartDatabase

NEWEST = len(migrations())


async def test_many_handles_at_once_make_the_schema_once(url: str, execute: Execute):
    stores = [PostgresStore.from_url(url) for _ in range(8)]

    await asyncio.gather(*(store.open() for store in stores))

    assert execute("SELECT number FROM ropeway.version") == [(NEWEST,)]
    for store in stores:
        await store.close()


async def test_a_schema_that_is_not_whole_names_the_command(store: PostgresStore, execute: Execute):
    await store.open()
    execute("DROP TABLE ropeway.waiting CASCADE")

    with pytest.raises(StoreRefused, match="ropeway migrate"):
        await store.add([[new_job()]])


async def test_a_missing_schema_is_not_made_unless_asked(url: str, execute: Execute):
    store = connect(url, create=False)

    with pytest.raises(StoreUnavailable, match="has no schema"):
        await store.open()

    await store.close()
    assert execute(f"SELECT to_regnamespace('{Target.from_url(url).schema}')") == [(None,)]


async def test_migrations_can_be_left_to_somebody_else(open_store: OpenStore, url: str):
    careful = f"{url}&migrate=off"
    with pytest.raises(StoreRefused, match="run `ropeway migrate`"):
        await open_store(careful).open()

    store = open_store(careful)
    await store.migrate()

    await add(store, new_job())


async def test_a_killed_migration_leaves_nothing(store: PostgresStore, url: str, execute: Execute):
    target = Target.from_url(url)
    statements = migrations(target.schema)[0].split(";\n\n")
    execute("BEGIN; " + ";\n".join(statements[:10]) + "; ROLLBACK")

    await add(store, new_job("a"))

    assert (await read(store, "a")).state == "waiting"


async def test_a_standby_is_refused(start_database: StartDatabase, open_store: OpenStore):
    server = start_database(default_transaction_read_only="on")

    with pytest.raises(StoreReadOnly, match="use the primary"):
        await open_store(server.url()).open()


async def test_another_isolation_by_default_does_no_harm(start_database: StartDatabase, open_store: OpenStore):
    server = start_database(default_transaction_isolation="serializable")
    store = open_store(server.url())

    await add(store, *(new_job() for _ in range(20)))
    given = await asyncio.gather(*(claim(store, 5) for _ in range(4)))

    assert sum(len(jobs) for jobs in given) == 20
    for link in store._executor.resources().pool._links:
        assert await link.ask(Statement("SHOW transaction_isolation")) == [("read committed",)]


async def test_transactions_of_the_store_have_the_same_isolation(start_database: StartDatabase):
    server = start_database(default_transaction_isolation="serializable")
    seen: list[str] = []

    def look(queue: Queue) -> None:
        with queue.sync.transaction() as tx:
            seen.extend(tx.execute("SHOW transaction_isolation").fetchone())

    async with Queue("letters", server.url()) as queue:
        async with queue.transaction() as tx:
            seen.extend(await (await tx.execute("SHOW transaction_isolation")).fetchone())
        await asyncio.to_thread(look, queue)

    assert seen == ["read committed"] * 2


async def test_a_user_without_rights_is_told_what_is_missing(start_database: StartDatabase, open_store: OpenStore):
    server = start_database()
    await open_store(server.url()).open()
    server.execute("CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA ropeway TO clerk")
    url = server.url().replace("postgres@", "clerk@")

    with pytest.raises(StoreRefused, match="permission denied for table version"):
        await open_store(url).open()
    with pytest.raises(StoreRefused, match="may not make or migrate the schema 'mine'"):
        await open_store(url.replace("schema=ropeway", "schema=mine")).open()


@pytest.mark.parametrize("wrong", ["password", "role", "database", "host"])
async def test_whoever_is_not_let_in_is_told_to_check_what_he_said(
    start_database: StartDatabase, open_store: OpenStore, wrong: str
):
    server = start_database()
    hba = server.folder / "data" / "pg_hba.conf"
    hba.write_text("local all postgres trust\nlocal all clerk scram-sha-256\nlocal all ghost trust\n")
    server.execute("CREATE ROLE clerk LOGIN PASSWORD 'right'")
    server.restart(signal.SIGINT)
    urls = {
        "password": server.url().replace("postgres@", "clerk:wrong@"),
        "role": server.url().replace("postgres@", "ghost@"),
        "database": server.url().replace("/postgres?", "/nowhere?"),
        "host": server.url().replace("postgres@", "stranger@"),
    }

    with pytest.raises(StoreRefused, match="check user, password and database"):
        await open_store(urls[wrong]).open()


async def test_the_rights_in_the_documentation_are_enough(start_database: StartDatabase, open_store: OpenStore):
    server = start_database()
    await open_store(server.url()).open()
    server.execute(
        "CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA ropeway TO clerk;"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ropeway TO clerk;"
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA ropeway TO clerk"
    )
    store = open_store(server.url().replace("postgres@", "clerk@"))

    await add(store, new_job("a"))
    await store.configure(QUEUE, pause=True)

    assert (await store.settings(QUEUE)).paused


def test_a_password_is_never_shown():
    target = Target.from_url("postgres://me:s3cret@jobs.example:6432/shop?schema=jobs&password=other")

    assert "s3cret" not in target.url
    assert "other" not in target.url
    assert "s3cret" in target.conninfo
    assert target.schema == "jobs"


@pytest.mark.parametrize(
    "said", ["schema=Jobs", "schema=a-b", "schema=pg_jobs", "timeout=0", "listen=maybe", "nonsense=1"]
)
def test_an_option_that_cannot_be_meant_is_refused(said: str):
    with pytest.raises(InvalidOption):
        Target.from_url(f"postgresql://localhost/shop?{said}")


def test_the_url_of_another_library_says_what_to_leave_out():
    with pytest.raises(InvalidOption, match=r"leave out '\+psycopg', as in postgresql://") as refused:
        connect("postgresql+psycopg://app:secret@localhost/shop")
    assert "secret" not in str(refused.value)
