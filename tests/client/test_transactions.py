"""Jobs that are part of a transaction: there with its commit, and not before. Drivers: tests/stores/postgres."""

# ruff: noqa: PT012 - what the end of a block raises is tested with its block

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from ropeway import (
    DuplicateJob,
    Flow,
    InvalidOption,
    JobType,
    PayloadTooLarge,
    Queue,
    SyncRefused,
    Worker,
)
from ropeway.client.transactions import to_its_end
from ropeway.errors import NoTransactions
from ropeway.store.contract import Store
from ropeway.store.url import connect
from tests.client.ledgers import Ledger, ledger, rows_of
from tests.patience import PATIENCE
from tests.stores.databases import new_database_place

from . import programs

pytestmark = pytest.mark.every_store

__all__ = ["ledger"]


class Undone(Exception):
    pass


@dataclass
class Email:
    to: str


class TestVisibility:
    async def test_nobody_sees_a_job_before_the_commit_and_everybody_after_it(self, ledger: Ledger):
        async with Queue("letters", ledger.url) as other:
            async with ledger.queue.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                job = await ledger.queue.add("send", {"to": "you"}, id="one", tx=tx)
                assert job.created
                for queue in (ledger.queue, other):
                    assert await queue.get("one") is None
                    assert (await queue.counts())["waiting"] == 0
                    assert not [event async for event in queue.events("start", follow=False)]
            for queue in (ledger.queue, other):
                assert (await queue.counts())["waiting"] == 1
                names = [event.name async for event in queue.events("start", follow=False)]
                assert names == ["added", "waiting"]
        assert (await job.refresh()).data == {"to": "you"}
        assert await ledger.notes() == ["paid"]

    async def test_a_rollback_leaves_nothing(self, ledger: Ledger):
        with pytest.raises(Undone):
            async with ledger.queue.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                await ledger.queue.add("send", tx=tx)
                await ledger.queue.add_many([("send", 1), ("send", 2, {"delay": 60})], tx=tx)
                raise Undone
        assert await ledger.is_untouched()
        assert await ledger.queue.store.queues() == []

    async def test_a_flow_comes_with_the_commit(self, ledger: Ledger):
        flow = Flow("report", id="r", children=[Flow("fetch", queue="etl"), Flow("fetch")])
        async with ledger.queue.transaction() as tx:
            job = await ledger.queue.add_flow(flow, tx=tx)
            assert await ledger.queue.get("r") is None
        assert [await one.state() for one in (job, *job.children)] == ["waiting-children", "waiting", "waiting"]
        for child in job.children:
            [claimed] = await Worker(child.queue).claim()
            await claimed.complete(5)
        assert await job.state() == "waiting"
        assert await job.children_results() == {child.id: 5 for child in job.children}

    async def test_a_rolled_back_flow_leaves_nothing(self, ledger: Ledger):
        with pytest.raises(Undone):
            async with ledger.queue.transaction() as tx:
                await ledger.queue.add_flows([Flow("report", children=[Flow("fetch", queue="etl")])], tx=tx)
                raise Undone
        assert await ledger.queue.store.queues() == []

    async def test_an_idle_listener_is_woken_by_the_commit(self, ledger: Ledger):
        listener = ledger.queue.store.listen("jobs", [ledger.queue.name])
        try:
            while await listener.wait(0.1):
                pass
            async with ledger.queue.transaction() as tx:
                await ledger.queue.add("send", tx=tx)
            assert await listener.wait(PATIENCE)
        finally:
            listener.close()

    async def test_an_idle_worker_runs_it(self, ledger: Ledger):
        async def handle(job: object) -> str:
            return "sent"

        async with Worker(ledger.queue, handle):
            first = await ledger.queue.add("send")
            assert await first.result(timeout=PATIENCE) == "sent"
            async with ledger.queue.transaction() as tx:
                job = await ledger.queue.add("send", tx=tx)
            assert await job.result(timeout=PATIENCE) == "sent"

    async def test_what_was_added_before_is_seen_inside(self, ledger: Ledger):
        async with ledger.queue.transaction() as tx:
            first = await ledger.queue.add("send", 1, id="one", tx=tx)
            second = await ledger.queue.add("send", 1, id="one", tx=tx)
        assert (first.created, second.created) == (True, False)
        assert (await ledger.queue.counts())["waiting"] == 1


class TestAnswers:
    async def test_an_id_that_is_there_is_found(self, ledger: Ledger):
        await ledger.queue.add("send", 1, id="one")
        async with ledger.queue.transaction() as tx:
            assert not (await ledger.queue.add("send", 1, id="one", tx=tx)).created

    async def test_a_conflict_leaves_the_transaction_usable_and_stores_nothing(self, ledger: Ledger):
        await ledger.queue.add("send", 1, id="one")
        async with ledger.queue.transaction() as tx:
            await tx.execute(ledger.insert, ("before",))
            with pytest.raises(DuplicateJob):
                await ledger.queue.add_many([("send", 2, {"id": "two"}), ("send", 2, {"id": "one"})], tx=tx)
            await tx.execute(ledger.insert, ("after",))
            await ledger.queue.add("send", 3, id="three", tx=tx)
        assert await ledger.notes() == ["after", "before"]
        assert await ledger.queue.get("two") is None
        assert (await ledger.queue.counts())["waiting"] == 2

    async def test_options_and_defaults_are_as_usual(self, ledger: Ledger):
        queue = Queue("letters", store=ledger.queue.store, attempts=4, size_limit=100)
        async with queue.transaction() as tx:
            plain = await queue.add("send", "a\x00b % $1 ü", tx=tx)
            other = await queue.add("send", delay=3600, priority=-3, lifo=True, remove_on_complete=True, tx=tx)
            with pytest.raises(PayloadTooLarge):
                await queue.add("send", "x" * 200, tx=tx)
        stored = await plain.refresh()
        assert (stored.data, stored.attempts, stored.state) == ("a\x00b % $1 ü", 4, "waiting")
        stored = await other.refresh()
        assert (stored.state, stored.priority) == ("delayed", -3)

    async def test_many_are_added_in_their_order(self, ledger: Ledger):
        async with ledger.queue.transaction() as tx:
            jobs = await ledger.queue.add_many([("send", n) for n in range(50)], tx=tx)
            assert await ledger.queue.add_many([], tx=tx) == []
        page = await ledger.queue.find("waiting")
        assert [job.id for job in page] == [job.id for job in jobs]
        assert [job.data for job in page] == list(range(50))

    async def test_typed_tasks_and_job_types_take_it_apart_from_their_arguments(self, ledger: Ledger):
        queue = Queue("letters", store=ledger.queue.store)

        @queue.task
        async def resize(path: str, tx: int = 1) -> str:
            return f"{path} {tx}"

        async with queue.transaction() as tx:
            one = await resize.using(tx=tx).add("a.png", tx=5)
            two = await resize.using(tx=tx).using(priority=3).add("b.png")
            three = await JobType("mail", Email).add(queue, Email("you"), tx=tx)
            assert (await queue.counts())["waiting"] == 0
            with pytest.raises(InvalidOption, match="add_many"):
                resize.using(tx=tx).call("a.png")
            [four] = await queue.add_many([resize.call("c.png")], tx=tx)
        assert (await one.refresh()).data == {"path": "a.png", "tx": 5}
        assert (await two.refresh()).priority == 3
        assert (await three.refresh()).data == {"to": "you"}
        assert four.created


class TestSync:
    async def test_the_twins_do_the_same(self, ledger: Ledger):
        twin = ledger.queue.sync

        @ledger.queue.task
        def shrink(path: str) -> int:
            return len(path)

        def produce() -> list[str]:
            with twin.transaction() as tx:
                tx.execute(ledger.insert, ("paid",))
                added = [
                    twin.add("send", tx=tx),
                    *twin.add_many([("send", 1), ("send", 2)], tx=tx),
                    shrink.using(tx=tx).add_sync("a.png"),
                    JobType("mail", Email).add_sync(ledger.queue, Email("you"), tx=tx),
                ]
                assert twin.counts()["waiting"] == 0
                assert rows_of(tx.execute(ledger.select)) == [("paid",)]
            return [job.id for job in added]

        ids = await asyncio.to_thread(produce)
        assert [job.id for job in await ledger.queue.find("waiting")] == ids

    async def test_a_rollback_leaves_nothing(self, ledger: Ledger):
        def produce() -> None:
            with ledger.queue.sync.transaction() as tx:
                tx.execute(ledger.insert, ("paid",))
                ledger.queue.sync.add("send", tx=tx)
                raise Undone

        with pytest.raises(Undone):
            await asyncio.to_thread(produce)
        assert await ledger.is_untouched()

    async def test_on_the_thread_of_a_loop_it_is_refused(self, ledger: Ledger):
        with pytest.raises(SyncRefused), ledger.queue.sync.transaction():
            pass

    async def test_each_call_says_which_is_the_right_one(self, ledger: Ledger):
        def wait(tx: object) -> None:
            with pytest.raises(InvalidOption, match=r"await queue\.add"):
                ledger.queue.sync.add("send", tx=tx)

        async with ledger.queue.transaction() as tx:
            await asyncio.to_thread(wait, tx)

        ready, done = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        given: list[object] = []

        def hold() -> None:
            with ledger.queue.sync.transaction() as tx:
                given.append(tx)
                loop.call_soon_threadsafe(ready.set)
                asyncio.run_coroutine_threadsafe(done.wait(), loop).result(PATIENCE)

        holding = asyncio.create_task(asyncio.to_thread(hold))
        await asyncio.wait_for(ready.wait(), PATIENCE)
        with pytest.raises(InvalidOption, match=r"queue\.sync\.add"):
            await ledger.queue.add("send", tx=given[0])
        done.set()
        await holding


class TestRefusals:
    @pytest.mark.parametrize("tx", [1, "postgresql://", object()], ids=["number", "text", "object"])
    async def test_unknown_objects_are_told_what_is_taken(self, ledger: Ledger, tx: object):
        with pytest.raises(InvalidOption, match=r"tx.*(SQLAlchemy|queue\.transaction)"):
            await ledger.queue.add("send", tx=tx)
        with pytest.raises(InvalidOption, match=r"tx.*(SQLAlchemy|queue\.transaction)"):
            await asyncio.to_thread(ledger.queue.sync.add, "send", tx=tx)
        assert await ledger.is_untouched()

    async def test_other_stores_say_which_can(self):
        queue = Queue("letters", "memory://")
        with pytest.raises(NoTransactions, match=r"postgresql://.*sqlite://"):
            await queue.add("send", tx=object())
        with pytest.raises(NoTransactions):
            await asyncio.to_thread(queue.sync.add, "send", tx=object())
        with pytest.raises(NoTransactions):
            async with queue.transaction():
                pass
        await queue.close()


class TestPlaces:
    async def test_another_handle_on_the_same_jobs_may_add(self, ledger: Ledger):
        async with Queue("other", ledger.url) as other:
            async with ledger.queue.transaction() as tx:
                await ledger.queue.add("send", tx=tx)
                await other.add("post", tx=tx)
            assert (await other.counts())["waiting"] == 1

    async def test_a_first_job_may_be_one_of_a_transaction(self, tmp_path: Path):
        for url in (f"sqlite:///{tmp_path}/new.db", new_database_place()):
            async with Queue("letters", store=connect(url)) as queue:
                async with queue.transaction() as tx:
                    await queue.add("send", tx=tx)
                assert (await queue.counts())["waiting"] == 1
                store: Store = queue.store
            await store.close()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_killed_before_the_commit_leaves_neither_and_after_it_both(ledger: Ledger, moment: str):
    wait = 'say("there"); time.sleep(100)'
    program = programs.start(
        f"""
        with queue.sync.transaction() as tx:
            tx.execute({ledger.insert!r}, ("paid",))
            queue.sync.add("send", tx=tx)
            {wait if moment == "before" else "pass"}
        {wait}
        """,
        ledger.url,
    )
    assert program.stdout is not None
    assert await asyncio.to_thread(program.stdout.readline) == "there\n"
    program.send_signal(signal.SIGKILL)
    assert (await asyncio.to_thread(programs.end, program)).code == -signal.SIGKILL
    if moment == "before":
        assert await ledger.is_untouched()
    assert await ledger.notes() == (["paid"] if moment == "after" else [])
    assert (await ledger.queue.counts())["waiting"] == (1 if moment == "after" else 0)
    job = await ledger.queue.add("send")
    assert await job.state() == "waiting"


async def test_a_commit_is_waited_for_however_often_its_caller_is_cancelled():
    may_end, has_ended = asyncio.Event(), asyncio.Event()

    async def commit() -> None:
        await may_end.wait()
        has_ended.set()

    caller = asyncio.create_task(to_its_end(commit()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    may_end.set()

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert has_ended.is_set()
