"""Processing by hand, without a running worker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ropeway import Backoff, InvalidInput, JobFailed, JobHandle, JobNotFound, LockLost, Queue, Worker
from ropeway.errors import HandlerError, InvalidPayload, JobFinished, StoreUnavailable
from ropeway.job.record import NewJob
from ropeway.store.contract import Store
from ropeway.store.values import StallRules
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Outage, Tampering, tampered
from tests.patience import PATIENCE

from .watching import told


@pytest.mark.every_store
async def test_a_claimed_job_can_be_completed(queue: Queue):
    job = await queue.add("send", {"to": "you"})
    worker = Worker(queue)
    [claimed] = await worker.claim()
    assert (claimed.id, claimed.data, claimed.attempt) == (job.id, {"to": "you"}, 1)
    seen = await job.refresh()
    assert (seen.state, seen.worker) == ("active", worker.id)
    await claimed.progress(50)
    await claimed.log("half way")
    await claimed.update_data({"to": "me"})
    await claimed.complete({"sent": True})
    assert await job.result(timeout=PATIENCE) == {"sent": True}
    seen = await job.refresh()
    assert (seen.progress, seen.data) == (50, {"to": "me"})


async def test_several_jobs_are_claimed_at_once_in_their_order(queue: Queue):
    jobs = await queue.add_many(("send", n) for n in range(5))
    claimed = await Worker(queue).claim(3)
    assert [job.id for job in claimed] == [job.id for job in jobs[:3]]
    assert len(await Worker(queue).claim(10)) == 2


async def test_nothing_to_claim_is_an_empty_list(queue: Queue):
    assert await Worker(queue).claim() == []


@pytest.mark.parametrize("limit", [0, -1, 1.5, "1", 1_001])
async def test_a_limit_that_cannot_be_meant_is_refused(queue: Queue, limit: Any):
    with pytest.raises(InvalidInput, match="limit"):
        await Worker(queue).claim(limit)


@pytest.mark.every_store
async def test_a_claim_waits_for_a_job_to_be_added(tampered_queue: Queue, tampering: Tampering):
    looked = tampering.answered("claim")
    claiming = asyncio.create_task(Worker(tampered_queue).claim(wait=3_600))
    await looked
    job = await tampered_queue.add("send")
    [claimed] = await asyncio.wait_for(claiming, PATIENCE)
    assert claimed.id == job.id


@pytest.mark.every_store
async def test_a_claim_waits_for_a_delay_to_end(queue: Queue):
    job = await queue.add("send", delay=0.1)
    [claimed] = await asyncio.wait_for(Worker(queue).claim(wait=3_600), PATIENCE)
    assert claimed.id == job.id


async def test_a_claim_waits_no_longer_than_it_was_asked_to(queue: Queue):
    async with asyncio.timeout(PATIENCE):
        assert await Worker(queue).claim(wait="50 ms") == []


async def test_a_claim_takes_from_all_queues_of_the_worker(make_queue: MakeQueue):
    first, second = make_queue("first"), make_queue("second")
    jobs = [await first.add("send"), await second.add("send"), await second.add("send")]
    claimed = await Worker([first, second]).claim(2)
    assert [job.id for job in claimed] == [job.id for job in jobs[:2]]
    assert [job.queue.name for job in claimed] == ["first", "second"]


async def test_a_claim_takes_only_names_that_the_worker_has_handlers_for(queue: Queue):
    await queue.add_many(["post", "send"])
    claimed = await Worker(queue, {"send": print}).claim(5)
    assert [job.name for job in claimed] == ["send"]


async def test_a_failed_attempt_is_retried_as_the_job_says(queue: Queue):
    job = await queue.add("send", attempts=2, backoff=Backoff.fixed(60))
    [claimed] = await Worker(queue).claim()
    await claimed.fail(ValueError("no luck"))
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made, seen.reason) == ("delayed", 1, "ValueError: no luck")
    await job.promote()
    [claimed] = await Worker(queue).claim()
    assert claimed.attempt == 2
    await claimed.fail("in a few words")
    with pytest.raises(JobFailed) as failed:
        await job.result(timeout=PATIENCE)
    assert failed.value.reason == "in a few words"


async def test_classify_and_backoffs_of_the_worker_decide_by_hand_too(queue: Queue):
    worker = Worker(queue, classify=lambda error, _: isinstance(error, OSError), backoffs={"mine": lambda *_: 60})
    for error, state in ((OSError("retried"), "delayed"), (ValueError("fatal"), "failed")):
        job = await queue.add("send", attempts=5, backoff=Backoff.custom("mine"))
        [claimed] = await worker.claim()
        await claimed.fail(error)
        assert await job.state() == state


@pytest.mark.parametrize("error", [5, b"bytes", "\ud800"])
async def test_a_failure_needs_an_error_or_text(queue: Queue, error: Any):
    await queue.add("send")
    [claimed] = await Worker(queue).claim()
    with pytest.raises(InvalidInput):
        await claimed.fail(error)
    await claimed.complete()


async def test_a_job_can_be_given_back_at_once_or_for_later(queue: Queue):
    job = await queue.add("send", attempts=1)
    [claimed] = await Worker(queue).claim()
    await claimed.release()
    assert await job.state() == "waiting"
    [claimed] = await Worker(queue).claim()
    await claimed.delay("1 hour")
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made, seen.attempts_started) == ("delayed", 0, 2)


@pytest.mark.every_store
async def test_a_renewed_lock_lasts_longer(queue: Queue, store: Store):
    await queue.add("send")
    [claimed] = await Worker(queue, lock_duration=1).claim()
    await claimed.renew("1 hour")
    await store.tick(queue.name, StallRules(), now=await store.clock() + 60_000)
    await claimed.renew()
    await claimed.complete()


@pytest.mark.every_store
async def test_whoever_lost_the_lock_can_do_nothing_more(queue: Queue, store: Store):
    job = await queue.add("send", 1)
    [claimed] = await Worker(queue, lock_duration=1).claim()
    await store.tick(queue.name, StallRules(), now=await store.clock() + 60_000)
    calls: list[Any] = [
        claimed.renew,
        lambda: claimed.progress(1),
        lambda: claimed.log("line"),
        lambda: claimed.update_data(2),
        claimed.complete,
        lambda: claimed.fail("no"),
        lambda: claimed.delay(5),
        claimed.release,
    ]
    for call in calls:
        with pytest.raises(LockLost):
            await call()
    seen = await job.refresh()
    assert (seen.state, seen.data, seen.progress, seen.attempts_made) == ("waiting", 1, None, 0)


async def test_a_job_can_be_settled_only_once(queue: Queue):
    job = await queue.add("send")
    [claimed] = await Worker(queue).claim()
    await claimed.complete("first")
    for call in (claimed.complete("second"), claimed.fail("no"), claimed.release(), claimed.progress(1)):
        with pytest.raises(JobFinished, match="settle by hand once"):
            await call
    assert (await job.refresh()).result == "first"


async def test_a_result_that_is_not_json_is_refused_and_nothing_is_settled(make_queue: MakeQueue):
    queue = make_queue(size_limit=100)
    job = await queue.add("send")
    [claimed] = await Worker(queue).claim()
    for bad in ({1}, object(), "x" * 99):
        with pytest.raises(InvalidPayload, match="result"):
            await claimed.complete(bad)
    assert await job.state() == "active"
    await claimed.complete("good")


@pytest.mark.every_store
async def test_a_settlement_whose_answer_was_lost_can_be_repeated(tampered_queue: Queue, tampering: Tampering):
    job = await tampered_queue.add("send")
    [claimed] = await Worker(tampered_queue).claim()
    tampering.after["settle"] = Outage(1)
    with pytest.raises(StoreUnavailable):
        await claimed.complete("done")
    await claimed.complete("done")
    assert await job.result(timeout=PATIENCE) == "done"


async def test_jobs_that_are_held_already_are_not_lost_when_another_store_fails(make_queue: MakeQueue, store: Store):
    tampering = Tampering()
    tampering.before["claim"] = Outage(2)
    here, elsewhere = make_queue(), make_queue("elsewhere", store=tampered(store, tampering))
    job = await here.add("send")
    [claimed] = await Worker([here, elsewhere]).claim(5)
    assert claimed.id == job.id
    with pytest.raises(StoreUnavailable):
        await Worker([elsewhere, here]).claim(5)
    await claimed.complete()


@pytest.mark.every_store
async def test_a_damaged_job_can_be_claimed_looked_at_and_failed(queue: Queue, store: Store):
    await store.add([[NewJob(queue.name, "damaged", "send", "{not json", "{not json")]])
    job = await queue.add("send", "whole")
    damaged, whole = await Worker(queue).claim(2)
    assert (whole.id, whole.data) == (job.id, "whole")
    with pytest.raises(HandlerError, match="corrupt record"):
        _ = damaged.data
    await damaged.fail("cannot be read")
    seen = await queue.get("damaged")
    assert seen is not None
    assert seen.snapshot is not None
    assert seen.snapshot.state == "failed"
    await whole.release()


async def test_progress_by_hand_does_not_hide_that_the_store_is_gone(tampered_queue: Queue, tampering: Tampering):
    await tampered_queue.add("send")
    [claimed] = await Worker(tampered_queue).claim()
    tampering.before["update"] = Outage(1)
    with pytest.raises(StoreUnavailable):
        await claimed.progress(1)
    await claimed.release()


@pytest.mark.every_store
async def test_a_job_whose_holder_is_gone_is_claimed_again_by_hand(queue: Queue):
    """Also where no worker runs that would recover it."""
    job = await queue.add("send")
    [lost] = await Worker(queue, lock_duration=0.1).claim()
    # Longer than the lost lock lasts: whoever waits looks once more when the wait is over.
    [found] = await Worker(queue, lock_duration=5).claim(wait=0.5)
    assert (found.id, found.token != lost.token) == (job.id, True)


@pytest.mark.every_store
async def test_a_job_whose_holder_is_gone_is_claimed_again_from_a_queue_that_is_never_empty(queue: Queue):
    job = await queue.add("send")
    [lost] = await Worker(queue, lock_duration=0.1).claim()
    worker = Worker(queue, stalled_interval=0.1)
    async with asyncio.timeout(PATIENCE):
        while True:
            await queue.add_many(["newer", "newer"])
            [found] = await worker.claim()
            if found.id == job.id:
                break
            await found.complete()
    assert found.token != lost.token


async def test_a_claim_takes_only_jobs_of_the_names_it_is_told(queue: Queue):
    await queue.add_many([("send", 1), ("print", 2), ("send", 3), ("fold", 4)])
    worker = Worker(queue, {"send": print})
    assert [job.data for job in await worker.claim(5, names=["print", "none"])] == [2]
    assert [job.data for job in await worker.claim(1)] == [1]
    assert [job.data for job in await Worker(queue).claim(5, names={"send", "fold"})] == [3, 4]


@pytest.mark.parametrize("names", ["send", [], [5], [""], 5])
async def test_names_that_cannot_be_meant_are_refused(queue: Queue, names: Any):
    await queue.add("send")
    with pytest.raises(InvalidInput, match="name"):
        await Worker(queue).claim(names=names)
    assert (await queue.counts())["waiting"] == 1


@pytest.mark.every_store
async def test_whoever_knows_the_token_goes_on_with_a_claimed_job(make_queue: MakeQueue):
    other, queue = make_queue("other"), make_queue()
    job = await queue.add("send", {"to": "you"}, attempts=2)
    [claimed] = await Worker(queue).claim()

    elsewhere = Worker([other, queue])
    taken = await elsewhere.claimed(claimed.id, claimed.token)
    assert (taken.data, taken.attempt, taken.queue) == ({"to": "you"}, 1, queue)
    await taken.renew()
    await taken.progress(50)
    await taken.fail("not yet")
    with pytest.raises(LockLost):
        await claimed.complete()
    assert (await job.refresh()).attempts_made == 1


@pytest.mark.every_store
async def test_a_token_that_is_not_the_jobs_takes_nothing(queue: Queue):
    job = await queue.add("send")
    worker = Worker(queue)
    with pytest.raises(JobNotFound):
        await worker.claimed("nobody", "token")
    with pytest.raises(LockLost):
        await worker.claimed(job.id, "")
    [claimed] = await worker.claim()
    with pytest.raises(LockLost):
        await worker.claimed(job.id, "another")
    await claimed.complete()
    with pytest.raises(LockLost):
        await worker.claimed(job.id, claimed.token)


async def _cancelled_at(door: Door, claim: Coroutine[Any, Any, Any]) -> None:
    claiming = asyncio.create_task(claim)
    await asyncio.wait_for(door.reached.wait(), PATIENCE)
    claiming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claiming


@pytest.mark.every_store
async def test_a_claim_that_is_cancelled_gives_back_what_it_was_about_to_get(
    tampered_queue: Queue, tampering: Tampering
):
    job = await tampered_queue.add("send")
    door = Door()
    tampering.after["claim"] = door.pass_through
    await _cancelled_at(door, Worker(tampered_queue, {"send": print}).claim())
    door.opened.set()
    await told(tampered_queue, "waiting", job, count=2)
    seen = await job.refresh()
    assert (seen.state, seen.stalled_count) == ("waiting", 0)


@pytest.mark.every_store
async def test_a_claim_that_is_cancelled_gives_back_all_that_are_still_its_own(
    tampered_queue: Queue, tampering: Tampering
):
    lost, *others = await tampered_queue.add_many(["send"] * 3)
    door = Door()
    tampering.after["claim"] = door.pass_through
    await _cancelled_at(door, Worker(tampered_queue, {"send": print}).claim(3))
    await lost.cancel()
    door.opened.set()
    for job in others:
        await told(tampered_queue, "waiting", job, count=2)


@pytest.mark.every_store
async def test_a_claim_that_is_cancelled_at_the_second_queue_gives_back_jobs_of_the_first(
    make_queue: MakeQueue, store: Store, tampering: Tampering
):
    first, second = (make_queue(name, tampered(store, tampering)) for name in ("first", "second"))
    job = await first.add("send")
    door = Door()
    tampering.before["claim"] = lambda request: door.pass_through() if request.queue == "second" else None
    await _cancelled_at(door, Worker([first, second], {"send": print}).claim(2))
    door.opened.set()
    await told(first, "waiting", job, count=2)


async def _spend(queue: Queue, count: int) -> list[JobHandle]:
    """Jobs that have had their only start, and wait again."""
    jobs = await queue.add_many([("send", n, {"max_starts": 1}) for n in range(count)])
    for claimed in await Worker(queue).claim(count):
        await claimed.release()
    return jobs


async def test_many_jobs_that_were_started_too_often_are_failed_in_one_step(
    tampered_queue: Queue, tampering: Tampering
):
    spent = await _spend(tampered_queue, 5)
    other = await tampered_queue.add("send")
    before = tampering.calls["settle"]

    [claimed] = await Worker(tampered_queue).claim(10)

    assert claimed.id == other.id
    assert tampering.calls["settle"] - before == 1
    assert {await job.state() for job in spent} == {"failed"}


async def test_jobs_that_cannot_be_failed_now_keep_nobody_from_the_others(tampered_queue: Queue, tampering: Tampering):
    await _spend(tampered_queue, 2)
    other = await tampered_queue.add("send")
    tampering.before["settle"] = Outage(1)

    [claimed] = await Worker(tampered_queue).claim(10)

    assert claimed.id == other.id


async def test_jobs_that_were_started_too_often_are_failed_and_not_given_out(queue: Queue):
    spent = await queue.add("send", max_starts=1, attempts=5)
    other = await queue.add("send")
    worker = Worker(queue)
    [claimed] = await worker.claim()
    assert claimed.id == spent.id
    await claimed.release()

    [claimed] = await worker.claim()

    assert claimed.id == other.id
    with pytest.raises(JobFailed, match="started more than allowable limit: max_starts is 1"):
        await spent.result(timeout=PATIENCE)
    assert await worker.claim() == []
