"""Dead letters: copies of jobs that failed for good, and how they are sent back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway import Job, JobFailed, Queue, Unrecoverable, Worker
from ropeway.errors import InvalidName, InvalidOption, StoreUnavailable
from ropeway.store.contract import Store
from ropeway.testing.factories import QUEUE
from tests.patience import PATIENCE

from .fixtures import MakeQueue
from .tampering import Tampering, tampered


@pytest.fixture
def graves(make_queue: MakeQueue) -> Queue:
    return make_queue("graves")


async def bury(queue: Queue, data: Any = None, **options: Any) -> str:
    """A job that has failed for good, with a letter in `graves`."""
    job = await queue.add("send", data, dead_letter="graves", **options)
    await fail_next(queue)
    return job.id


async def fail_next(queue: Queue) -> None:
    [held] = await Worker(queue).claim()
    await held.fail(Unrecoverable("no luck"))


async def letters(graves: Queue, *states: str) -> list[str]:
    """The ids of the jobs of which there are letters."""
    jobs = (await graves.find(*states)).jobs
    return [job.snapshot.origin.id for job in jobs if job.snapshot.origin is not None]


class TestLetters:
    @pytest.mark.every_store
    async def test_a_job_that_fails_for_good_leaves_one_with_its_origin(self, queue: Queue, graves: Queue):
        async def handle(job: Job) -> None:
            raise ValueError("no luck")

        job = await queue.add("send", {"to": "you"}, dead_letter="graves", attempts=2)
        async with Worker(queue, handle):
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)
        [letter] = (await graves.find()).jobs

        assert (letter.name, letter.data, letter.snapshot.state) == ("send", {"to": "you"}, "waiting")
        origin = letter.snapshot.origin
        assert origin is not None
        assert (origin.queue, origin.id, origin.attempts) == (QUEUE, job.id, 2)
        assert "no luck" in origin.reason

    async def test_it_may_be_a_default_of_the_queue(self, make_queue: MakeQueue, graves: Queue):
        queue = make_queue(dead_letter="graves")
        job = await queue.add("send")
        await fail_next(queue)

        assert await letters(graves) == [job.id]

    async def test_one_that_is_cancelled_leaves_none(self, queue: Queue, graves: Queue):
        job = await queue.add("send", dead_letter="graves")
        await job.cancel()

        assert await letters(graves) == []

    async def test_its_own_queue_is_refused(self, queue: Queue):
        with pytest.raises(InvalidOption, match="own queue"):
            await queue.add("send", dead_letter=QUEUE)

    @pytest.mark.parametrize("name", ["", "a b", 5, "-x"])
    async def test_what_is_no_queue_is_refused(self, queue: Queue, name: Any):
        with pytest.raises(InvalidName, match="queue name"):
            await queue.add("send", dead_letter=name)


class TestRedrive:
    @pytest.mark.every_store
    async def test_all_are_sent_back_and_run_with_all_their_attempts(self, queue: Queue, graves: Queue):
        buried = [await bury(queue, number) for number in range(3)]

        assert await graves.redrive() == 3
        assert await letters(graves) == []
        found = (await queue.find("waiting")).jobs
        assert sorted(job.id for job in found) == sorted(buried)
        assert {job.snapshot.attempts_made for job in found} == {0}

    async def test_given_ones_are_sent_back(self, queue: Queue, graves: Queue):
        buried = [await bury(queue, number) for number in range(3)]
        chosen = next(job.id for job in (await graves.find()).jobs if job.snapshot.origin.id == buried[1])  # type: ignore[union-attr]

        assert await graves.redrive(chosen, chosen, "missing") == 1
        assert sorted(await letters(graves)) == sorted([buried[0], buried[2]])

    async def test_so_many_are_sent_back_as_asked_for(self, queue: Queue, graves: Queue):
        for number in range(3):
            await bury(queue, number)

        assert await graves.redrive(limit=2) == 2
        assert len(await letters(graves)) == 1

    @pytest.mark.every_store
    async def test_a_job_that_is_gone_is_added_again(self, queue: Queue, graves: Queue):
        id = await bury(queue, {"to": "you"}, attempts=3, id="mine", priority=-2, tags=["eu"])
        await queue.remove(id)

        assert await graves.redrive() == 1
        job = await queue.get("mine")
        assert job is not None
        assert (job.snapshot.state, job.data, job.snapshot.attempts) == ("waiting", {"to": "you"}, 3)
        assert (job.snapshot.dead_letter, job.snapshot.priority, [*job.snapshot.tags]) == ("graves", -2, ["eu"])

    async def test_one_that_fails_again_has_a_letter_again(self, queue: Queue, graves: Queue):
        id = await bury(queue)
        await graves.redrive()
        await fail_next(queue)

        assert await letters(graves) == [id]

    async def test_letters_that_a_worker_has_failed_to_deal_with_are_sent_back_too(self, queue: Queue, graves: Queue):
        id = await bury(queue)
        await fail_next(graves)

        assert await letters(graves, "failed") == [id]
        assert await graves.redrive() == 1

    async def test_what_is_no_letter_or_is_dealt_with_stays(self, queue: Queue, graves: Queue):
        await bury(queue)
        [held] = await Worker(graves).claim()
        plain = await graves.add("plain")

        assert await graves.redrive() == 0
        assert await graves.redrive(plain.id, held.id) == 0
        await held.complete()
        assert await graves.redrive() == 0
        assert await plain.state() == "waiting"

    async def test_an_empty_queue_has_none(self, graves: Queue):
        assert await graves.redrive() == 0

    @pytest.mark.parametrize("limit", [0, -1, 1.5, True])
    async def test_a_limit_is_a_whole_number(self, graves: Queue, limit: Any):
        with pytest.raises(InvalidOption, match="limit"):
            await graves.redrive(limit=limit)

    async def test_code_without_a_loop_has_the_same_call(self, queue: Queue, graves: Queue):
        await bury(queue)

        assert await asyncio.to_thread(graves.sync.redrive) == 1


class TestCrashes:
    """The job is sent back first, and its letter goes after that: a crash may come between the two."""

    @pytest.fixture
    def crashing(self, make_queue: MakeQueue, store: Store, tampering: Tampering) -> Queue:
        def crash(*_: Any) -> None:
            raise StoreUnavailable("store", "crashed")

        tampering.before["remove"] = crash
        return make_queue("graves", store=tampered(store, tampering))

    async def test_the_next_call_finds_the_letter_and_sends_no_job_twice(
        self, queue: Queue, crashing: Queue, graves: Queue
    ):
        id = await bury(queue)
        with pytest.raises(StoreUnavailable):
            await crashing.redrive()

        assert await letters(graves) == [id]
        assert await graves.redrive() == 1
        assert await letters(graves) == []
        assert (await queue.counts())["waiting"] == 1

    async def test_a_job_that_has_succeeded_since_does_not_run_again(
        self, queue: Queue, crashing: Queue, graves: Queue
    ):
        id = await bury(queue)
        with pytest.raises(StoreUnavailable):
            await crashing.redrive()
        [held] = await Worker(queue).claim()
        await held.complete()
        await graves.redrive()

        job = await queue.get(id)
        assert job is not None
        assert job.snapshot.state == "completed"
        assert await letters(graves) == []


class TestRaces:
    """The job of a letter may go, or come, after it was looked for."""

    async def test_a_letter_stays_if_its_job_was_removed_meanwhile(
        self, queue: Queue, graves: Queue, make_queue: MakeQueue, store: Store, tampering: Tampering
    ):
        id = await bury(queue)

        async def remove(*_: Any) -> None:
            await queue.remove(id)

        tampering.before["retry"] = remove
        assert await make_queue("graves", store=tampered(store, tampering)).redrive() == 0

        assert await letters(graves) == [id]
        assert await graves.redrive() == 1

    async def test_a_letter_stays_if_its_id_was_taken_meanwhile(
        self, queue: Queue, graves: Queue, make_queue: MakeQueue, store: Store, tampering: Tampering
    ):
        id = await bury(queue)
        await queue.remove(id)

        async def take(*_: Any) -> None:
            await queue.add("send", "something else", id=id)

        tampering.before["add"] = take
        assert await make_queue("graves", store=tampered(store, tampering)).redrive() == 0

        assert await letters(graves) == [id]
