"""Jobs in transactions of other libraries' connections, each on a real server."""

# ruff: noqa: PT012 - what the end of a block raises is tested with its block

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from ropeway import DuplicateJob, InvalidOption, Job, LockLost, Queue, SyncJob, Worker
from ropeway.errors import StoreRefused
from ropeway.stores.postgres.target import Target
from tests.client import programs
from tests.patience import PATIENCE
from tests.stores.databases import in_schema, new_database, new_schema, server_url, used_database_place
from tests.worker.watching import Ear, entered


class Place(NamedTuple):
    queue: Queue
    url: str
    table: str

    def rows(self) -> int:
        with psycopg.connect(**psycopg_options()) as connection:
            [(number,)] = connection.execute(f"SELECT count(*) FROM {self.table}".encode()).fetchall()
            return int(number)

    async def waiting(self) -> int:
        return (await self.queue.counts())["waiting"]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    url, table = used_database_place(), f"{new_schema()}_note"
    async with Queue("letters", url) as queue:
        async with queue.transaction() as tx:
            await tx.execute(f"CREATE TABLE {table} (text text)")
        yield Place(queue, url, table)


def psycopg_options(url: str | None = None) -> dict[str, Any]:
    return {name: value for name, value in conninfo_to_dict(url or server_url()).items() if value is not None}


def asyncpg_options() -> dict[str, Any]:
    options = psycopg_options()
    return {("database" if name == "dbname" else name): value for name, value in options.items()}


def sqlalchemy_url(driver: str, url: str | None = None) -> str:
    return (url or server_url()).replace("postgresql:", f"postgresql+{driver}:", 1)


class Given(NamedTuple):
    """A connection with its transaction, and how its library is used."""

    tx: Any
    execute: Callable[[str], Any]
    commit: Callable[[], Any]
    roll_back: Callable[[], Any]


@asynccontextmanager
async def psycopg_async(**options: Any) -> AsyncIterator[Given]:
    connection = await psycopg.AsyncConnection.connect(**psycopg_options(), **options)
    try:
        yield Given(connection, lambda sql: connection.execute(sql.encode()), connection.commit, connection.rollback)
    finally:
        await connection.close()


@asynccontextmanager
async def psycopg_async_autocommit() -> AsyncIterator[Given]:
    async with psycopg_async(autocommit=True) as given:
        await given.execute("BEGIN")
        yield given


@asynccontextmanager
async def psycopg_async_rows() -> AsyncIterator[Given]:
    """Connections that make cursors and rows of other kinds."""
    async with psycopg_async(row_factory=dict_row, cursor_factory=psycopg.AsyncRawCursor) as given:
        yield given


@asynccontextmanager
async def asyncpg_connection() -> AsyncIterator[Given]:
    connection = await asyncpg.connect(**asyncpg_options())
    try:
        transaction = connection.transaction()
        await transaction.start()
        yield Given(connection, connection.execute, transaction.commit, transaction.rollback)
    finally:
        await connection.close()


@asynccontextmanager
async def asyncpg_pool() -> AsyncIterator[Given]:
    async with asyncpg.create_pool(**asyncpg_options(), min_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Given(connection, connection.execute, transaction.commit, transaction.rollback)


def sqlalchemy_async(driver: str, *, session: bool) -> Callable[[], AbstractAsyncContextManager[Given]]:
    @asynccontextmanager
    async def make() -> AsyncIterator[Given]:
        engine = create_async_engine(sqlalchemy_url(driver))
        try:
            async with AsyncSession(engine) if session else engine.connect() as given:
                yield Given(given, lambda sql: given.execute(sqlalchemy.text(sql)), given.commit, given.rollback)
        finally:
            await engine.dispose()

    return make


@contextmanager
def psycopg_sync() -> Iterator[Given]:
    with psycopg.connect(**psycopg_options()) as connection:
        yield Given(connection, lambda sql: connection.execute(sql.encode()), connection.commit, connection.rollback)


@contextmanager
def psycopg_sync_rows() -> Iterator[Given]:
    with psycopg.connect(**psycopg_options(), row_factory=dict_row, cursor_factory=psycopg.RawCursor) as connection:
        yield Given(connection, lambda sql: connection.execute(sql.encode()), connection.commit, connection.rollback)


def sqlalchemy_sync(*, session: bool) -> Callable[[], AbstractContextManager[Given]]:
    @contextmanager
    def make() -> Iterator[Given]:
        engine = sqlalchemy.create_engine(sqlalchemy_url("psycopg"))
        try:
            with Session(engine) if session else engine.connect() as given:
                yield Given(given, lambda sql: given.execute(sqlalchemy.text(sql)), given.commit, given.rollback)
        finally:
            engine.dispose()

    return make


Awaited: TypeAlias = Callable[[], AbstractAsyncContextManager[Given]]
WaitedFor: TypeAlias = Callable[[], AbstractContextManager[Given]]

AWAITED: Final[dict[str, Awaited]] = {
    "psycopg": psycopg_async,
    "psycopg-autocommit": psycopg_async_autocommit,
    "psycopg-rows": psycopg_async_rows,
    "asyncpg": asyncpg_connection,
    "asyncpg-pool": asyncpg_pool,
    "AsyncSession-psycopg": sqlalchemy_async("psycopg", session=True),
    "AsyncSession-asyncpg": sqlalchemy_async("asyncpg", session=True),
    "AsyncConnection-psycopg": sqlalchemy_async("psycopg", session=False),
    "AsyncConnection-asyncpg": sqlalchemy_async("asyncpg", session=False),
}
WAITED_FOR: Final[dict[str, WaitedFor]] = {
    "psycopg": psycopg_sync,
    "psycopg-rows": psycopg_sync_rows,
    "Session": sqlalchemy_sync(session=True),
    "Connection": sqlalchemy_sync(session=False),
}

awaited = pytest.mark.parametrize("make", AWAITED.values(), ids=AWAITED.keys())
waited_for = pytest.mark.parametrize("make", WAITED_FOR.values(), ids=WAITED_FOR.keys())


class TestAdding:
    @awaited
    async def test_awaited_connections_share_their_transaction(self, place: Place, make: Awaited):
        await place.queue.add("send", 1, id="there")
        async with make() as given:
            await given.execute(f"INSERT INTO {place.table} VALUES ('paid')")
            job = await place.queue.add("send", {"n": "a\x00 % $1 :x"}, tx=given.tx)
            await place.queue.add_many([("send", 1), ("later", 2, {"delay": 60})], tx=given.tx)
            assert not (await place.queue.add("send", 1, id="there", tx=given.tx)).created
            with pytest.raises(DuplicateJob):
                await place.queue.add("send", 2, id="there", tx=given.tx)
            await given.execute(f"INSERT INTO {place.table} VALUES ('still usable')")
            assert (await place.waiting(), place.rows()) == (1, 0)
            await given.commit()
            assert (await place.waiting(), place.rows()) == (3, 2)
        assert (await job.refresh()).data == {"n": "a\x00 % $1 :x"}

    @awaited
    async def test_a_rollback_takes_the_jobs_with_it(self, place: Place, make: Awaited):
        async with make() as given:
            await given.execute(f"INSERT INTO {place.table} VALUES ('paid')")
            await place.queue.add("send", tx=given.tx)
            await given.roll_back()
        assert (await place.waiting(), place.rows()) == (0, 0)
        assert not [event async for event in place.queue.events("start", follow=False)]

    @waited_for
    async def test_sync_connections_share_their_transaction(self, place: Place, make: WaitedFor):
        def produce() -> None:
            with make() as given:
                given.execute(f"INSERT INTO {place.table} VALUES ('paid')")
                place.queue.sync.add("send", {"n": "a\x00 % $1 :x"}, id="one", tx=given.tx)
                with pytest.raises(DuplicateJob):
                    place.queue.sync.add("send", 2, id="one", tx=given.tx)
                assert place.queue.sync.counts()["waiting"] == 0
                given.commit()
                assert place.queue.sync.counts()["waiting"] == 1
                place.queue.sync.add("send", tx=given.tx)
                given.roll_back()

        await asyncio.to_thread(produce)
        assert (await place.waiting(), place.rows()) == (1, 1)

    async def test_one_in_autocommit_mode_adds_at_once(self, place: Place):
        async with await psycopg.AsyncConnection.connect(**psycopg_options(), autocommit=True) as connection:
            await place.queue.add("send", tx=connection)
        assert await place.waiting() == 1

    @pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
    async def test_stricter_isolation_is_fine(self, place: Place, level: str):
        await place.queue.add("send", 1, id="there")
        async with psycopg_async() as given:
            await given.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            await place.queue.add("send", tx=given.tx)
            with pytest.raises(DuplicateJob):
                await place.queue.add("send", 2, id="there", tx=given.tx)
            await given.commit()
        assert await place.waiting() == 2

    @pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
    async def test_a_queue_that_is_younger_than_the_transaction_is_fine(self, place: Place, level: str):
        queue = Queue("fresh", store=place.queue.store)
        async with psycopg_async() as given:
            await given.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            await given.execute("SELECT 1")
            await queue.add("send", id="one", tx=given.tx)
            await queue.add_many([("send", 1), ("send", 2)], tx=given.tx)
            await given.commit()
        await queue.add("send", id="four")

        assert (await queue.counts())["waiting"] == 4

    async def test_an_open_transaction_holds_nobody_up(self, place: Place):
        """Not even in a queue that had no job before it."""
        queue = Queue("fresh", store=place.queue.store)
        done = asyncio.Event()

        async def handle(job: Job) -> str:
            done.set()
            return "sent"

        async with psycopg_async() as given:
            await queue.add("send", tx=given.tx)
            async with Worker(queue, handle):
                job = await queue.add("send")
                await queue.add_many([("send", n) for n in range(10)])
                await entered(done)
                assert await job.result(timeout=PATIENCE) == "sent"
                for other in (await queue.find("waiting", "active")).jobs:
                    await other.result(timeout=PATIENCE)
                assert (await queue.counts())["completed"] == 11
                done.clear()
                await given.commit()
                await entered(done)


class TestRefusals:
    @awaited
    async def test_a_sync_call_refuses_what_has_to_be_awaited(self, place: Place, make: Awaited):
        async with make() as given:
            with pytest.raises(InvalidOption, match=r"await queue\.add"):
                await asyncio.to_thread(place.queue.sync.add, "send", tx=given.tx)

    @waited_for
    async def test_an_awaited_call_refuses_what_would_block(self, place: Place, make: WaitedFor):
        with make() as given, pytest.raises(InvalidOption, match=r"queue\.sync\.add"):
            await place.queue.add("send", tx=given.tx)

    async def test_another_database_is_refused_and_its_transaction_stays_usable(self, place: Place):
        other = new_database()
        async with Queue("letters", in_schema(other, place.url.rpartition("schema=")[2])) as queue:
            await queue.add("send")
        async with await psycopg.AsyncConnection.connect(other) as connection:
            with pytest.raises(InvalidOption, match="is a connection to the database"):
                await place.queue.add("send", tx=connection)
            await connection.execute("SELECT 1")

    async def test_a_database_without_the_schema_is_refused(self, place: Place):
        other = new_database()
        async with await psycopg.AsyncConnection.connect(other) as connection:
            with pytest.raises(StoreRefused, match="no schema"):
                await place.queue.add("send", tx=connection)
        engine = create_async_engine(sqlalchemy_url("asyncpg", other))
        async with AsyncSession(engine) as session:
            with pytest.raises(StoreRefused, match="no schema"):
                await place.queue.add("send", tx=session)
        await engine.dispose()

    async def test_other_databases_of_sqlalchemy_are_refused(self, place: Place):
        def produce() -> None:
            engine = sqlalchemy.create_engine("sqlite://")
            with Session(engine) as session, pytest.raises(InvalidOption, match="sqlite"):
                place.queue.sync.add("send", tx=session)
            engine.dispose()

        await asyncio.to_thread(produce)

    async def test_errors_of_a_driver_are_raised_as_they_are(self, place: Place):
        async with psycopg_async() as given:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await given.execute("SELECT 1/0")
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                await place.queue.add("send", tx=given.tx)


class TestCompleting:
    @pytest.mark.parametrize("name", [name for name in AWAITED if "autocommit" not in name])
    async def test_an_awaited_connection_is_committed_with_the_completion(self, place: Place, name: str):
        async def handle(job: Job) -> None:
            async with AWAITED[name]() as given:
                # What the fixture began is not for the block.
                await given.roll_back()
                async with job.transaction(using=given.tx) as tx:
                    assert tx is given.tx
                    await given.execute(f"INSERT INTO {place.table} VALUES ('paid')")
                    await job.queue.add("receipt", tx=tx)
                    job.complete_with("paid")
                    assert (place.rows(), await job.state()) == (0, "active")
                assert (place.rows(), await job.state()) == (1, "completed")

        async with Worker(place.queue, {"pay": handle}):
            job = await place.queue.add("pay")
            assert await job.result(timeout=PATIENCE) == "paid"
        assert await place.waiting() == 1

    @pytest.mark.parametrize("name", WAITED_FOR)
    async def test_a_sync_connection_is_committed_with_the_completion(self, place: Place, name: str):
        def handle(job: SyncJob) -> None:
            with WAITED_FOR[name]() as given:
                given.roll_back()
                with job.transaction(using=given.tx):
                    given.execute(f"INSERT INTO {place.table} VALUES ('paid')")
                    job.queue.sync.add("receipt", tx=given.tx)
                    job.complete_with("paid")
                    assert place.rows() == 0
                assert place.rows() == 1

        async with Worker(place.queue, {"pay": handle}):
            job = await place.queue.add("pay")
            assert await job.result(timeout=PATIENCE) == "paid"
        assert await place.waiting() == 1

    @awaited
    async def test_a_stale_token_rolls_the_caller_back(self, place: Place, make: Awaited):
        await place.queue.add("pay")
        [job] = await Worker(place.queue).claim()
        await place.queue.cancel(job.id)
        async with make() as given:
            await given.roll_back()
            with pytest.raises(LockLost):
                async with job.transaction(using=given.tx):
                    await given.execute(f"INSERT INTO {place.table} VALUES ('paid')")
        assert place.rows() == 0

    @pytest.mark.parametrize("make", [asyncpg_connection, psycopg_async_autocommit])
    async def test_a_transaction_that_the_block_could_not_end_is_refused(self, place: Place, make: Awaited):
        await place.queue.add("pay")
        [job] = await Worker(place.queue).claim()
        async with make() as given:
            with pytest.raises(InvalidOption, match="begin none"):
                async with job.transaction(using=given.tx):
                    pass
        await job.complete()

    @pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
    @pytest.mark.parametrize("session", [True, False])
    async def test_one_that_has_no_transactions_is_refused(self, place: Place, driver: str, session: bool):
        await place.queue.add("pay")
        [job] = await Worker(place.queue).claim()
        engine = create_async_engine(sqlalchemy_url(driver), isolation_level="AUTOCOMMIT")
        async with AsyncSession(engine) if session else engine.connect() as given:
            with pytest.raises(InvalidOption, match="AUTOCOMMIT"):
                async with job.transaction(using=given):
                    await given.execute(sqlalchemy.text(f"INSERT INTO {place.table} VALUES ('paid')"))
        await engine.dispose()
        assert place.rows() == 0
        await job.complete()

    @pytest.mark.parametrize("session", [True, False])
    async def test_a_sync_one_that_has_no_transactions_is_refused(self, place: Place, session: bool):
        await place.queue.add("pay")

        def work() -> None:
            [job] = Worker(place.queue).claim_sync()
            engine = sqlalchemy.create_engine(sqlalchemy_url("psycopg")).execution_options(isolation_level="AUTOCOMMIT")
            with (
                Session(engine) if session else engine.connect() as given,
                pytest.raises(InvalidOption, match="AUTOCOMMIT"),
                job.transaction(using=given),
            ):
                given.execute(sqlalchemy.text(f"INSERT INTO {place.table} VALUES ('paid')"))
            engine.dispose()

        await asyncio.to_thread(work)
        assert place.rows() == 0

    async def test_a_sync_one_that_is_refused_keeps_its_transaction(self, place: Place):
        await place.queue.add("pay")

        def work() -> None:
            [job] = Worker(place.queue).claim_sync()
            with psycopg.connect(server_url(), autocommit=True) as given, given.transaction():
                given.execute(f"INSERT INTO {place.table} VALUES ('paid')".encode())
                with pytest.raises(InvalidOption, match="begin none"), job.transaction(using=given):
                    pass

        await asyncio.to_thread(work)
        assert place.rows() == 1

    async def test_a_connection_to_another_database_is_refused(self, place: Place):
        other = new_database()
        async with Queue("letters", in_schema(other, Target.from_url(place.url).schema)) as queue:
            await queue.add("pay")
        async with Queue("letters", place.url) as queue, await psycopg.AsyncConnection.connect(other) as connection:
            await queue.add("pay")
            [job] = await Worker(queue).claim()
            with pytest.raises(InvalidOption, match="'using' is a connection to the database"):
                async with job.transaction(using=connection):
                    await connection.execute("CREATE TABLE note (text text)")
            assert await (await connection.execute("SELECT to_regclass('note')")).fetchone() == (None,)
            await job.complete()

    async def test_psycopg_in_autocommit_mode_is_given_a_transaction(self, place: Place):
        await place.queue.add("pay")
        [job] = await Worker(place.queue).claim()
        await place.queue.cancel(job.id)
        async with psycopg_async(autocommit=True) as given:
            with pytest.raises(LockLost):
                async with job.transaction(using=given.tx):
                    await given.execute(f"INSERT INTO {place.table} VALUES ('paid')")
        assert place.rows() == 0

    async def test_a_cancel_meanwhile_rolls_back(self, place: Place):
        inside = asyncio.Event()

        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(f"INSERT INTO {place.table} VALUES ('paid')")
                inside.set()
                await asyncio.Event().wait()

        worker = Worker(place.queue, handle)
        ear = Ear(worker, "cancelled")
        async with worker:
            job = await place.queue.add("pay")
            await entered(inside)
            await job.cancel()
            await ear.hear("cancelled")
        assert (place.rows(), await job.state()) == (0, "cancelled")

    async def test_connections_of_the_store_are_used_again_as_they_were(self, place: Place):
        seen: list[tuple[int, str]] = []
        for _ in range(3):
            async with place.queue.transaction() as tx:
                [(zone,)] = await (await tx.execute("SELECT current_setting('TimeZone')")).fetchall()
                seen.append((tx.info.backend_pid, zone))
                await tx.execute("SET TIME ZONE 'Asia/Tokyo'")
                tx.row_factory = dict_row
        assert len(set(seen)) == 1

    async def test_one_that_broke_meanwhile_is_replaced(self, place: Place):
        async with place.queue.transaction() as tx:
            backend = tx.info.backend_pid
        with psycopg.connect(server_url()) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", (backend,))
        async with place.queue.transaction() as tx:
            assert tx.info.backend_pid != backend
            await place.queue.add("send", tx=tx)
        assert await place.waiting() == 1

    async def test_nobody_else_ends_the_store_s_transaction(self, place: Place):
        with pytest.raises(psycopg.ProgrammingError):
            async with place.queue.transaction() as tx:
                await place.queue.add("send", tx=tx)
                await tx.commit()
        assert await place.waiting() == 0


async def test_django(place: Place):
    """In a process of its own: its settings are global."""
    options = psycopg_options()
    program = f"""
    import django
    from django.conf import settings
    settings.configure(
        DATABASES={{"default": {{
            "ENGINE": "django.db.backends.postgresql", "NAME": {options["dbname"]!r}, "USER": {options.get("user")!r},
            "PASSWORD": {options.get("password")!r}, "HOST": {options.get("host")!r}, "PORT": {options.get("port")!r},
        }}}},
        USE_TZ=True,
    )
    django.setup()
    from django.db import connection, connections, transaction

    def count():
        return queue.sync.counts()["waiting"]

    def insert():
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO {place.table} VALUES ('paid')")

    with transaction.atomic():
        insert()
        queue.sync.add("send", {{"n": "a\\x00%s"}}, id="one", tx=connection)
        queue.sync.add("send", tx=connections["default"])
        try:
            queue.sync.add("send", 2, id="one", tx=connection)
        except DuplicateJob:
            say("duplicate")
        say(count())
    say(count())
    try:
        with transaction.atomic():
            queue.sync.add("send", tx=connection)
            1 / 0
    except ZeroDivisionError:
        say(count())
    queue.sync.add("send", tx=connection)
    say(count())

    async def awaits():
        try:
            await queue.add("send", tx=connection)
        except InvalidOption as error:
            say("queue.sync.add" in str(error))
    asyncio.run(awaits())

    [job] = Worker(queue).claim_sync()
    with transaction.atomic():
        try:
            with job.transaction(using=connection): pass
        except InvalidOption as error:
            say("begin none" in str(error))
    transaction.set_autocommit(False)
    try:
        with job.transaction(using=connection): pass
    except InvalidOption as error:
        say("begin none" in str(error))
    transaction.set_autocommit(True)
    try:
        with job.transaction(using=connection):
            insert()
            1 / 0
    except ZeroDivisionError:
        pass
    with job.transaction(using=connection):
        insert()
        job.complete_with(7)
    say(job.refresh().result)
    [job] = Worker(queue).claim_sync()
    job.cancel()
    try:
        with job.transaction(using=connection):
            insert()
    except LockLost:
        say("lost")
    connection.close()
    """
    ended = await asyncio.to_thread(programs.run, program, place.url)
    assert ended.complaints == ""
    assert ended.said == ["duplicate", "0", "2", "2", "3", "True", "True", "True", "7", "lost"]
    assert place.rows() == 2
