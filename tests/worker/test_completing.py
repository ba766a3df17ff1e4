"""A handler's writes and its job's completion: both or neither."""

# ruff: noqa: PT012 - what the end of a block raises is tested with its block

from __future__ import annotations

import asyncio
import logging
import signal
from dataclasses import dataclass
from typing import Any

import pytest

from ropeway import Event, InvalidInput, InvalidMove, Job, JobFailed, JobFinished, LockLost, Queue, SyncJob, Worker
from ropeway.errors import NoTransactions
from tests.client import programs
from tests.client.ledgers import Ledger, ledger
from tests.patience import PATIENCE

from .watching import Ear, entered, told

pytestmark = pytest.mark.every_store

__all__ = ["ledger"]


class Undone(Exception):
    pass


@dataclass
class Receipt:
    number: int


async def events_of(queue: Queue) -> list[str]:
    return [event.name async for event in queue.events("start", follow=False)]


class TestBoth:
    async def test_writes_and_completion_are_committed_together(self, ledger: Ledger):
        seen: list[Any] = []

        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                job.complete_with({"paid": True})
                seen.append(await job.state())
            seen.append(await job.state())
            seen.append(await ledger.notes())

        worker = Worker(ledger.queue, handle)
        ear = Ear(worker, "completed", "failed", "lock-lost")
        async with worker:
            job = await ledger.queue.add("pay")
            assert await job.result(timeout=PATIENCE) == {"paid": True}
            heard = await ear.hear("completed")
        assert seen == ["active", "completed", ["paid"]]
        assert heard.data == {"result": {"paid": True}}
        assert ear.names == ["completed"]
        assert (await ledger.queue.counts())["completed"] == 1
        assert (await ledger.queue.metrics())[0].completed == 1
        assert await events_of(ledger.queue) == ["added", "waiting", "active", "completed", "drained"]

    async def test_a_def_handler_does_the_same(self, ledger: Ledger):
        def handle(job: SyncJob) -> None:
            with job.transaction() as tx:
                tx.execute(ledger.insert, ("paid",))
                job.queue.sync.add("receipt", tx=tx)
                job.complete_with(5)

        async with Worker(ledger.queue, {"pay": handle}):
            job = await ledger.queue.add("pay")
            assert await job.result(timeout=PATIENCE) == 5
        assert await ledger.notes() == ["paid"]
        assert (await ledger.queue.counts())["waiting"] == 1

    async def test_without_a_result_it_is_none(self, ledger: Ledger):
        async def handle(job: Job) -> None:
            async with job.transaction():
                pass

        async with Worker(ledger.queue, handle):
            job = await ledger.queue.add("pay")
            assert await job.result(timeout=PATIENCE) is None

    async def test_jobs_added_inside_are_there_with_the_completion(self, ledger: Ledger):
        async def pay(job: Job) -> None:
            async with job.transaction() as tx:
                await job.queue.add("receipt", id="receipt", tx=tx)
                assert await job.queue.get("receipt") is None

        async def receipt(job: Job) -> str:
            return "sent"

        async with Worker(ledger.queue, {"pay": pay, "receipt": receipt}):
            job = await ledger.queue.add("pay")
            await job.result(timeout=PATIENCE)
            following = await ledger.queue.get("receipt")
            assert following is not None
            assert await following.result(timeout=PATIENCE) == "sent"

    async def test_retention_applies(self, ledger: Ledger):
        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))

        worker = Worker(ledger.queue, handle)
        ear = Ear(worker, "completed")
        async with worker:
            job = await ledger.queue.add("pay", remove_on_complete=True)
            await ear.hear("completed")
        assert await ledger.queue.get(job.id) is None
        assert (await ledger.queue.counts())["completed"] == 0

    async def test_a_typed_result_is_stored_as_its_task_says(self, ledger: Ledger):
        queue = Queue("typed", store=ledger.queue.store)

        @queue.task
        async def pay(job: Job, amount: int) -> Receipt:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                receipt = Receipt(amount)
                job.complete_with(receipt)
            return receipt

        @queue.task
        def pay_too(job: SyncJob, amount: int) -> Receipt:
            with job.transaction():
                job.complete_with(Receipt(amount))
            return Receipt(amount)

        async with Worker(queue):
            assert await (await pay.add(3)).result(timeout=PATIENCE) == Receipt(3)
            assert await (await pay_too.add(4)).result(timeout=PATIENCE) == Receipt(4)

    async def test_it_makes_room_under_a_global_limit(self, ledger: Ledger):
        async def handle(job: Job) -> None:
            async with job.transaction():
                pass

        async with Worker(ledger.queue, handle, concurrency=5, max_global_concurrency=1):
            jobs = await ledger.queue.add_many([("pay", n) for n in range(20)])
            for job in jobs:
                await job.result(timeout=PATIENCE)

    async def test_a_job_claimed_by_hand_is_ended_by_it(self, ledger: Ledger):
        await ledger.queue.add_many(["pay", "pay"])
        one, two = await Worker(ledger.queue).claim(2)
        async with one.transaction() as tx:
            await tx.execute(ledger.insert, ("one",))
        with pytest.raises(JobFinished):
            await one.complete()

        def by_hand() -> None:
            with two.sync.transaction() as tx:
                tx.execute(ledger.insert, ("two",))
                two.sync.complete_with(2)

        await asyncio.to_thread(by_hand)
        assert await ledger.notes() == ["one", "two"]
        assert (await two.refresh()).result == 2


class TestNeither:
    async def test_an_error_inside_rolls_back_and_fails_the_attempt(self, ledger: Ledger):
        async def handle(job: Job) -> str:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, (f"attempt {job.attempt}",))
                job.complete_with(f"attempt {job.attempt}")
                if job.attempt == 1:
                    raise Undone
            return "ignored"

        async with Worker(ledger.queue, handle):
            job = await ledger.queue.add("pay", attempts=2)
            assert await job.result(timeout=PATIENCE) == "attempt 2"
        assert await ledger.notes() == ["attempt 2"]
        assert (await told(ledger.queue, "retrying")).data["reason"].startswith("Undone")

    async def test_a_stale_token_rolls_the_writes_back(self, ledger: Ledger):
        await ledger.queue.add_many(["pay", "pay"])
        one, two = await Worker(ledger.queue).claim(2)
        await ledger.queue.cancel(one.id)
        await ledger.queue.remove(two.id, force=True)
        for job in (one, two):
            with pytest.raises(LockLost):
                async with job.transaction() as tx:
                    await tx.execute(ledger.insert, ("paid",))
                    await ledger.queue.add("receipt", tx=tx)

            def by_hand(job: Any = job) -> None:
                with pytest.raises(LockLost), job.sync.transaction() as tx:
                    tx.execute(ledger.insert, ("paid",))

            await asyncio.to_thread(by_hand)
        assert await ledger.notes() == []
        assert await one.state() == "cancelled"
        assert (await ledger.queue.counts())["waiting"] == 0

    async def test_a_job_that_was_given_to_another_worker_is_lost(self, ledger: Ledger):
        await ledger.queue.add("pay")
        [first] = await Worker(ledger.queue).claim()
        await first.renew(0.001)
        second = None
        while second is None:
            second = next(iter(await Worker(ledger.queue).claim()), None)
        with pytest.raises(LockLost):
            async with first.transaction() as tx:
                await tx.execute(ledger.insert, ("first",))
        async with second.transaction() as tx:
            await tx.execute(ledger.insert, ("second",))
        assert await ledger.notes() == ["second"]

    async def test_a_timeout_rolls_back(self, ledger: Ledger):
        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                await asyncio.Event().wait()

        def handle_in_thread(job: SyncJob) -> None:
            with job.transaction() as tx:
                tx.execute(ledger.insert, ("paid",))
                while not job.cancelled:
                    pass

        async with Worker(ledger.queue, {"pay": handle, "pay-too": handle_in_thread}):
            for name in ("pay", "pay-too"):
                job = await ledger.queue.add(name, timeout=0.05)
                with pytest.raises(JobFailed, match="AttemptTimeout"):
                    await job.result(timeout=PATIENCE)
        assert await ledger.notes() == []

    async def test_a_shutdown_rolls_back_and_hands_back(self, ledger: Ledger):
        inside = asyncio.Event()

        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                inside.set()
                await asyncio.Event().wait()

        async with Worker(ledger.queue, handle, grace=0):
            job = await ledger.queue.add("pay")
            await entered(inside)
        assert await job.state() == "waiting"
        assert await ledger.notes() == []

    async def test_a_result_that_cannot_be_stored_rolls_back(self, ledger: Ledger):
        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                job.complete_with(object())

        async with Worker(ledger.queue, handle):
            job = await ledger.queue.add("pay", attempts=3)
            with pytest.raises(JobFailed, match="InvalidPayload"):
                await job.result(timeout=PATIENCE)
        assert await ledger.notes() == []

    async def test_a_worker_killed_before_the_commit_leaves_neither(self, ledger: Ledger):
        job = await ledger.queue.add("pay")
        program = programs.start(
            f"""
            def handle(job):
                with job.transaction() as tx:
                    tx.execute({ledger.insert!r}, ("paid by the dead",))
                    say("there")
                    time.sleep(100)
            Worker(queue, handle, lock_duration=1).run_sync()
            """,
            ledger.url,
        )
        assert program.stdout is not None
        assert await asyncio.to_thread(program.stdout.readline) == "there\n"
        program.send_signal(signal.SIGKILL)
        await asyncio.to_thread(programs.end, program)
        assert await ledger.notes() == []

        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))

        async with Worker(ledger.queue, handle):
            await job.result(timeout=PATIENCE)
        assert await ledger.notes() == ["paid"]


class TestOnce:
    async def test_after_a_rollback_there_may_be_another_block_but_not_after_a_commit(self, ledger: Ledger):
        async def handle(job: Job) -> None:
            with pytest.raises(Undone):
                async with job.transaction() as tx:
                    await tx.execute(ledger.insert, ("first",))
                    job.complete_with("first")
                    raise Undone
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("second",))
                with pytest.raises(InvalidInput, match="open already"):
                    async with job.transaction():
                        pass
            with pytest.raises(InvalidMove, match="completed"):
                async with job.transaction():
                    pass

        async with Worker(ledger.queue, handle):
            job = await ledger.queue.add("pay")
            assert await job.result(timeout=PATIENCE) is None
        assert await ledger.notes() == ["second"]

    async def test_a_handler_that_raises_after_it_is_logged(self, ledger: Ledger, caplog: pytest.LogCaptureFixture):
        async def handle(job: Job) -> None:
            async with job.transaction() as tx:
                await tx.execute(ledger.insert, ("paid",))
                job.complete_with("paid")
            raise Undone

        worker = Worker(ledger.queue, handle)
        ear = Ear(worker, "completed", "failed", "retrying")
        with caplog.at_level(logging.WARNING, "ropeway"):
            async with worker:
                job = await ledger.queue.add("pay", attempts=3)
                await ear.hear("completed")
        assert (await job.refresh()).result == "paid"
        assert ear.names == ["completed"]
        [record] = caplog.records
        assert "raised after that" in record.message
        assert record.exc_info is not None
        assert record.exc_info[0] is Undone

    async def test_a_returned_value_that_is_not_the_result_is_logged(
        self, ledger: Ledger, caplog: pytest.LogCaptureFixture
    ):
        async def handle(job: Job) -> Any:
            async with job.transaction():
                job.complete_with({"n": 1})
            return job.data

        worker = Worker(ledger.queue, handle)
        ear = Ear(worker, "completed")
        with caplog.at_level(logging.WARNING, "ropeway"):
            async with worker:
                await ledger.queue.add("pay", {"n": 1})
                await ear.hear("completed", 1)
                assert not caplog.records
                await ledger.queue.add("pay", {"n": 2})
                await ear.hear("completed", 2)
        assert "handler returned is not stored" in caplog.text

    async def test_a_handler_that_goes_on_is_left_alone_though_its_lock_is_gone(self, ledger: Ledger):
        """Another job's lock shows that renewals went on meanwhile."""
        committed, renewed = asyncio.Event(), asyncio.Event()
        told_to_stop: list[bool] = []

        async def go_on(job: Job) -> None:
            async with job.transaction():
                pass
            committed.set()
            await renewed.wait()
            told_to_stop.append(job.cancelled)

        async def renew(job: Job) -> None:
            await committed.wait()
            for _ in range(3):
                before = job.confirmed
                while job.confirmed == before:  # noqa: ASYNC110 - set by another thread
                    await asyncio.sleep(0.01)
            renewed.set()

        worker = Worker(ledger.queue, {"go-on": go_on, "renew": renew}, lock_duration=0.4)
        ear = Ear(worker, "completed", "lock-lost")
        async with worker:
            await ledger.queue.add_many(["go-on", "renew"])
            await ear.hear("completed", 2)
        assert told_to_stop == [False]
        assert ear.names == ["completed", "completed"]

    async def test_complete_with_is_for_the_block(self, ledger: Ledger):
        async def handle(job: Job) -> str:
            with pytest.raises(InvalidInput, match="return the result"):
                job.complete_with(1)
            return "returned"

        async with Worker(ledger.queue, handle):
            job = await ledger.queue.add("pay")
            assert await job.result(timeout=PATIENCE) == "returned"


async def test_a_handler_that_has_ended_cannot_begin_one(ledger: Ledger):
    kept: list[Job] = []

    async def handle(job: Job) -> None:
        kept.append(job)

    async with Worker(ledger.queue, handle):
        job = await ledger.queue.add("pay")
        await job.result(timeout=PATIENCE)
        with pytest.raises(JobFinished):
            async with kept[0].transaction():
                pass


async def test_other_stores_say_which_can():
    async def handle(job: Job) -> None:
        with pytest.raises(NoTransactions):
            async with job.transaction():
                pass

    queue = Queue("letters", "memory://")
    async with Worker(queue, handle):
        await (await queue.add("pay")).result(timeout=PATIENCE)
    await queue.close()


async def test_the_stream_tells_of_it_as_of_any_completion(ledger: Ledger):
    async def handle(job: Job) -> None:
        async with job.transaction():
            job.complete_with([1])

    async with Worker(ledger.queue, handle):
        job = await ledger.queue.add("pay")
        event: Event = await told(ledger.queue, "completed", job)
    assert event.data == {"result": [1]}
