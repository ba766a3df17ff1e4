"""On the store of a test, a job comes when its transaction is committed, and never if it is rolled back."""

# ruff: noqa: PT012 - what the end of a block raises is tested with its block

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from ropeway import InvalidInput, InvalidOption, Job, JobNotFound, LockLost, Queue, SyncJob
from ropeway.testing import FakeClock, FakeStore, added, assert_added, drain, drain_sync
from tests.client import programs, test_transactions
from tests.client.ledgers import Ledger
from tests.stores.databases import server_url
from tests.worker import test_completing

# What the stores with transactions promise, this one does too.
TestAnswers = test_transactions.TestAnswers
TestRefusals = test_transactions.TestRefusals
TestSync = test_transactions.TestSync
TestBoth = test_completing.TestBoth


class Undone(Exception):
    pass


@pytest.fixture
async def ledger(queue: Queue) -> Ledger:
    async with queue.transaction() as tx:
        await tx.execute("CREATE TABLE note (text text)")
    return Ledger(queue, queue.store.url, "INSERT INTO note VALUES (?)", "SELECT text FROM note ORDER BY text")


async def test_nobody_sees_a_job_before_the_commit(queue: Queue):
    async with queue.transaction() as tx:
        job = await queue.add("send", tx=tx)
        with pytest.raises(JobNotFound):
            await job.state()
        assert (await drain(queue, lambda _: None)).attempts == []
        assert added(queue) == []
    assert await job.state() == "waiting"
    assert_added(queue, "send", count=1)


async def test_a_rollback_takes_writes_and_jobs_back(ledger: Ledger):
    with pytest.raises(Undone):
        async with ledger.queue.transaction() as tx:
            await tx.execute(ledger.insert, ("paid",))
            await ledger.queue.add("send", tx=tx)
            raise Undone
    assert added(ledger.queue) == []
    assert await ledger.is_untouched()


async def test_a_delay_counts_from_the_add(queue: Queue, clock: FakeClock):
    async with queue.transaction() as tx:
        job = await queue.add("send", delay="1 hour", tx=tx)
        await clock.advance("20 minutes")
    due_at = (await job.refresh()).due_at
    assert due_at is not None
    assert (due_at - clock.now()).total_seconds() == 40 * 60
    assert_added(queue, "send", delay="1 hour")


async def test_one_that_would_wait_for_itself_is_told(queue: Queue):
    async with queue.transaction():
        with pytest.raises(InvalidInput, match="would wait"):
            async with queue.transaction():
                pass


async def test_transactions_take_turns(ledger: Ledger):
    async def note(word: str) -> None:
        async with ledger.queue.transaction() as tx:
            await tx.execute(ledger.insert, (word,))
            await asyncio.sleep(0)
            await ledger.queue.add("send", word, tx=tx)

    await asyncio.gather(*(note(word) for word in "abc"))
    assert await ledger.notes() == ["a", "b", "c"]
    assert len(added(ledger.queue)) == 3


async def test_a_handler_that_lost_its_job_writes_nothing(ledger: Ledger):
    async def handle(job: Job) -> None:
        with pytest.raises(LockLost):
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                await ledger.queue.cancel(job.id)

    await ledger.queue.add("pay")
    await drain(ledger.queue, handle)
    assert await ledger.notes() == []


def test_a_store_of_another_test_has_other_transactions(queue: Queue):
    other = Queue("letters", store=FakeStore())
    with other.sync.transaction() as tx, pytest.raises(InvalidOption, match="another test"):
        queue.sync.add("send", tx=tx)


class TestSQLAlchemy:
    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[Engine]:
        engine = create_engine(f"sqlite:///{tmp_path}/app.db")
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE orders (number INTEGER PRIMARY KEY)"))
        yield engine
        engine.dispose()

    @pytest.fixture(params=["Session", "scoped_session", "Connection"])
    def given(self, request: pytest.FixtureRequest, engine: Engine) -> Iterator[Any]:
        match request.param:
            case "Session":
                given: Any = Session(engine)
            case "scoped_session":
                given = scoped_session(sessionmaker(engine))
            case _:
                given = engine.connect()
        yield given
        given.close()

    def order(self, queue: Queue, given: Any, number: int) -> None:
        given.execute(text("INSERT INTO orders VALUES (:number)"), {"number": number})
        queue.sync.add("receipt", number, tx=given)

    def test_a_job_comes_with_the_commit(self, queue: Queue, given: Any):
        self.order(queue, given, 1)
        self.order(queue, given, 2)
        assert added(queue) == []
        given.commit()
        assert [job.data for job in added(queue)] == [1, 2]
        self.order(queue, given, 3)
        given.commit()
        assert [job.data for job in added(queue)] == [1, 2, 3]

    def test_no_statement_of_your_own_is_needed(self, queue: Queue, given: Any):
        queue.sync.add("receipt", tx=given)
        assert added(queue) == []
        given.commit()
        assert len(added(queue)) == 1

    def test_a_job_goes_with_the_rollback(self, queue: Queue, given: Any):
        self.order(queue, given, 1)
        given.rollback()
        self.order(queue, given, 2)
        given.commit()
        assert [job.data for job in added(queue)] == [2]

    def test_and_when_it_is_closed_without_a_commit(self, queue: Queue, given: Any):
        self.order(queue, given, 1)
        given.close()
        assert added(queue) == []

    def test_a_savepoint_takes_back_only_what_came_after_it(self, queue: Queue, given: Any):
        self.order(queue, given, 1)
        with pytest.raises(Undone), given.begin_nested():
            self.order(queue, given, 2)
            raise Undone
        with given.begin_nested():
            self.order(queue, given, 3)
        assert added(queue) == []
        given.commit()
        assert sorted(job.data for job in added(queue)) == [1, 3]

    def test_an_id_is_known_within_its_transaction_and_not_after_a_rollback(self, queue: Queue, given: Any):
        assert queue.sync.add("receipt", id="one", tx=given).created
        assert not queue.sync.add("receipt", id="one", tx=given).created
        given.rollback()
        assert queue.sync.add("receipt", id="one", tx=given).created

    @pytest.mark.parametrize("kind", [Session, Engine.connect], ids=["Session", "Connection"])
    def test_a_handler_s_writes_are_committed_with_its_completion(self, queue: Queue, engine: Engine, kind: Any):
        def send(job: SyncJob) -> None:
            with kind(engine) as given, job.transaction(using=given):
                self.order(queue, given, job.attempt)
                if job.attempt == 1:
                    raise Undone
                job.complete_with("sent")

        queue.sync.add("send", attempts=2)
        drained = drain_sync(queue, {"send": send, "receipt": lambda _: None})
        assert [attempt.result for attempt in drained.completed] == ["sent", None]
        with engine.connect() as connection:
            assert [*connection.execute(text("SELECT number FROM orders"))] == [(2,)]
        assert [job.data for job in added(queue, "receipt")] == [2]


class TestAwaitedSQLAlchemy:
    @pytest.fixture(params=["AsyncSession", "AsyncConnection"])
    async def given(self, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        engine = create_async_engine(server_url().replace("postgresql:", "postgresql+psycopg:", 1))
        async with AsyncSession(engine) if request.param == "AsyncSession" else engine.connect() as given:
            yield given
        await engine.dispose()

    async def test_a_job_comes_with_the_commit_and_goes_with_the_rollback(self, queue: Queue, given: Any):
        await given.execute(text("SELECT 1"))
        await queue.add("receipt", 1, tx=given)
        assert added(queue) == []
        await given.commit()
        await queue.add("receipt", 2, tx=given)
        await given.rollback()
        assert [job.data for job in added(queue)] == [1]

    async def test_a_handler_s_writes_are_committed_with_its_completion(self, queue: Queue, given: Any):
        async def send(job: Job) -> None:
            if job.attempt == 1:
                async with job.transaction(using=given):
                    await queue.add("receipt", 1, tx=given)
                    raise Undone
            async with job.transaction(using=given):
                await given.execute(text("SELECT 1"))
                await queue.add("receipt", 2, tx=given)
                job.complete_with("sent")

        await queue.add("send", attempts=2)
        drained = await drain(queue, {"send": send, "receipt": lambda _: None})
        assert [attempt.result for attempt in drained.completed] == ["sent", None]
        assert [job.data for job in added(queue, "receipt")] == [2]

    async def test_each_call_says_which_is_the_right_one(self, queue: Queue, given: Any):
        with pytest.raises(InvalidOption, match=r"await queue\.add"):
            await asyncio.to_thread(queue.sync.add, "send", tx=given)
        with Session() as session, pytest.raises(InvalidOption, match=r"queue\.sync\.add"):
            await queue.add("send", tx=session)


def test_connections_that_tell_nobody_of_their_commit_are_refused(queue: Queue):
    with psycopg.connect(server_url()) as connection, pytest.raises(InvalidOption, match="tells nobody of its commit"):
        queue.sync.add("send", tx=connection)


def test_django(tmp_path: Path):
    """In a process of its own: its settings are global."""
    program = f"""
    import django
    from django.conf import settings
    settings.configure(
        DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "{tmp_path}/app.db"}}}}, USE_TZ=True
    )
    django.setup()
    import unittest
    from django.db import connection, connections, transaction
    from django.test import TestCase
    from ropeway.testing import FakeStore, added, drain_sync

    queue = Queue("letters", store=FakeStore())

    def count():
        return len(added(queue))

    with transaction.atomic():
        queue.sync.add("send", id="one", tx=connection)
        say(queue.sync.add("send", id="one", tx=connections["default"]).created)
        say(count())
        try:
            with transaction.atomic():
                queue.sync.add("send", tx=connection)
                1 / 0
        except ZeroDivisionError:
            pass
    say(count())
    try:
        with transaction.atomic():
            queue.sync.add("send", id="two", tx=connection)
            1 / 0
    except ZeroDivisionError:
        say(count())
    with transaction.atomic():
        say(queue.sync.add("send", id="two", tx=connection).created)
    queue.sync.add("send", tx=connection)
    say(count())

    def handle(job):
        with job.transaction(using=connection):
            with connection.cursor() as cursor:
                cursor.execute("CREATE TABLE IF NOT EXISTS note (text)")
                cursor.execute("INSERT INTO note VALUES ('sent')")
            job.complete_with("sent")
        connection.close()

    drained = drain_sync(queue, handle)
    say([attempt.result for attempt in drained.completed])
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM note")
        say(cursor.fetchone()[0])

    class Visit(TestCase):
        def test_a_view(self):
            with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
                queue.sync.add("send", tx=connection)
            say(count())

    unittest.TextTestRunner().run(Visit("test_a_view"))
    """
    ended = programs.run(program, "memory://")
    assert ended.said == ["False", "0", "1", "1", "True", "3", "['sent', 'sent', 'sent']", "3", "4"], ended
