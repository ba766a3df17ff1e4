from __future__ import annotations

import asyncio
from itertools import count

from ...job.numbers import MOST
from ...job.record import JobRecord
from ...store.contract import Store
from ...store.values import BATCH, StallRules
from ..arrange import active, add, add_one, claim, claim_one, delayed, events_of, read
from ..factories import (
    DAY,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    WORKER,
    claim_request,
    complete,
    hand_back,
    new_job,
    new_jobs,
    postpone,
)


def ids(jobs: list[JobRecord]) -> list[str]:
    return [job.id for job in jobs]


class TestClaim:
    async def test_a_claimed_job_is_held_by_its_worker(self, store: Store) -> None:
        waiting = await add_one(store)

        claimed = await store.claim(claim_request(token="t", worker="w", lock=SECOND), now=NOW + 5)

        [job] = claimed.jobs
        assert job.state == "active"
        assert (job.token, job.worker) == ("t", "w")
        assert (job.started_at, job.renewed_at, job.lock_until) == (NOW + 5, NOW + 5, NOW + 5 + SECOND)
        assert (job.attempts_started, job.attempts_made) == (1, 0)
        assert (job.data, job.options, job.order) == (waiting.data, waiting.options, waiting.order)
        assert job == await read(store, job.id)
        assert claimed.now == NOW + 5

    async def test_an_empty_queue_gives_nothing(self, store: Store) -> None:
        claimed = await store.claim(claim_request(10), now=NOW)

        assert (claimed.jobs, claimed.again_at) == ([], None)

    async def test_it_gives_no_more_than_asked_for(self, store: Store) -> None:
        await add(store, *new_jobs(3))

        assert len(await claim(store, 2)) == 2
        assert len(await claim(store, 2)) == 1

    async def test_jobs_of_another_queue_stay_there(self, store: Store) -> None:
        await add(store, new_job(queue="parcels"))

        assert await claim(store, 10) == []

    async def test_each_claim_counts_as_a_start(self, store: Store) -> None:
        job = await active(store)
        await store.settle(QUEUE, [hand_back(job)], now=NOW)

        assert (await claim_one(store)).attempts_started == 2

    async def test_it_is_announced_with_its_worker(self, store: Store) -> None:
        job = await active(store)

        assert await events_of(store, "claim") == [(job.id, {"worker": WORKER})]


class TestClaimOfDelayed:
    async def test_a_delayed_job_is_not_given_before_it_is_due(self, store: Store) -> None:
        await add(store, new_job(delay=SECOND))

        assert await claim(store, 10, now=NOW + SECOND - 1) == []

    async def test_a_job_is_given_at_the_very_instant_it_is_due(self, store: Store) -> None:
        await add(store, new_job("a", delay=SECOND))

        [job] = await claim(store, 10, now=NOW + SECOND)

        assert (job.id, job.due_at) == ("a", None)

    async def test_a_claim_promotes_before_it_takes(self, store: Store) -> None:
        await add(store, new_job("a", delay=SECOND), new_job("b", delay=SECOND), new_job("c", delay=DAY))

        await claim(store, 1, now=NOW + SECOND)

        assert [(id, detail) for id, detail in await events_of(store, "promote")] == [("a", {}), ("b", {})]
        counts = await store.count(QUEUE)
        assert (counts["active"], counts["waiting"], counts["delayed"]) == (1, 1, 1)

    async def test_one_claim_promotes_a_batch_at_most(self, store: Store) -> None:
        await store.add([new_jobs(BATCH + 1, delay=SECOND)], now=NOW)

        claimed = await store.claim(claim_request(1), now=NOW + SECOND)

        counts = await store.count(QUEUE)
        assert len(claimed.jobs) == 1
        assert (counts["waiting"], counts["delayed"]) == (BATCH - 1, 1)

    async def test_it_says_when_the_next_delay_ends(self, store: Store) -> None:
        await add(store, new_job(delay=2 * SECOND), new_job(delay=SECOND))

        claimed = await store.claim(claim_request(1), now=NOW)

        assert claimed.again_at == NOW + SECOND

    async def test_it_says_so_too_when_it_gave_some_but_not_all(self, store: Store) -> None:
        await add(store, new_job(), new_job(delay=SECOND))

        claimed = await store.claim(claim_request(2), now=NOW)

        assert (len(claimed.jobs), claimed.again_at) == (1, NOW + SECOND)

    async def test_it_says_nothing_of_it_when_it_gave_all(self, store: Store) -> None:
        await add(store, new_job(), new_job(delay=SECOND))

        claimed = await store.claim(claim_request(1), now=NOW)

        assert claimed.again_at is None

    async def test_a_postponed_job_comes_back_when_due(self, store: Store) -> None:
        job = await active(store)
        await store.settle(QUEUE, [postpone(job, SECOND)], now=NOW)

        assert await claim(store, now=NOW + SECOND - 1) == []
        assert ids(await claim(store, now=NOW + SECOND)) == [job.id]


class TestClaimByName:
    async def test_only_the_named_jobs_are_given(self, store: Store) -> None:
        await add(store, new_job("a", name="send"), new_job("b", name="print"), new_job("c", name="fold"))

        assert ids(await claim(store, 10, names=("fold", "print"))) == ["b", "c"]

    async def test_no_name_at_all_gives_nothing(self, store: Store) -> None:
        await add(store, new_job())

        assert await claim(store, 10, names=()) == []

    async def test_named_jobs_come_in_order_of_urgency(self, store: Store) -> None:
        await add(
            store,
            new_job("a", name="send"),
            new_job("x", name="fold", priority=-1),
            new_job("b", name="print", priority=-1),
            new_job("c", name="send", lifo=True),
        )

        assert ids(await claim(store, 10, names=("send", "print"))) == ["b", "c", "a"]

    async def test_a_named_job_behind_many_others_is_found(self, store: Store) -> None:
        await store.add([new_jobs(1_500, name="send")], now=NOW)
        await add(store, new_job("last", name="print"))

        assert ids(await claim(store, names=("print",))) == ["last"]


class TestClaimWhilePaused:
    async def test_a_paused_queue_gives_nothing(self, store: Store) -> None:
        await add(store, new_job())
        await store.configure(QUEUE, pause=True, now=NOW)

        assert await claim(store, 10) == []

    async def test_a_paused_queue_still_promotes(self, store: Store) -> None:
        await add(store, new_job(delay=SECOND))
        await store.configure(QUEUE, pause=True, now=NOW)

        await claim(store, 10, now=NOW + SECOND)

        assert (await store.count(QUEUE))["waiting"] == 1

    async def test_a_paused_queue_says_when_the_next_delay_ends(self, store: Store) -> None:
        await add(store, new_job(), new_job(delay=SECOND))
        await store.configure(QUEUE, pause=True, now=NOW)

        claimed = await store.claim(claim_request(1), now=NOW)

        assert claimed.again_at == NOW + SECOND

    async def test_a_resumed_queue_gives_again(self, store: Store) -> None:
        await add(store, new_job("a"))
        await store.configure(QUEUE, pause=True, now=NOW)
        await store.configure(QUEUE, pause=False, now=NOW)

        assert ids(await claim(store, 10)) == ["a"]

    async def test_a_paused_name_is_skipped(self, store: Store) -> None:
        await add(store, new_job("a", name="send"), new_job("b", name="print"))
        await store.configure(QUEUE, pause_names=["send"], now=NOW)

        assert ids(await claim(store, 10)) == ["b"]

    async def test_a_paused_name_is_skipped_when_asked_for(self, store: Store) -> None:
        await add(store, new_job("a", name="send"), new_job("b", name="print"))
        await store.configure(QUEUE, pause_names=["send"], now=NOW)

        assert ids(await claim(store, 10, names=("send", "print"))) == ["b"]

    async def test_a_resumed_name_is_given_in_its_place(self, store: Store) -> None:
        await add(store, new_job("a", name="send"), new_job("b", name="print"))
        await store.configure(QUEUE, pause_names=["send"], now=NOW)
        await store.configure(QUEUE, resume_names=["send"], now=NOW)

        assert ids(await claim(store, 10)) == ["a", "b"]

    async def test_active_jobs_finish_while_the_queue_is_paused(self, store: Store) -> None:
        job = await active(store)
        await store.configure(QUEUE, pause=True, now=NOW)

        settled = await store.settle(QUEUE, [complete(job)], now=NOW)

        assert [answer.verdict for answer in settled.answers] == ["done"]

    async def test_another_queue_is_not_paused(self, store: Store) -> None:
        await add(store, new_job("a", queue="parcels"))
        await store.configure(QUEUE, pause=True, now=NOW)

        assert ids(await claim(store, 10, queue="parcels")) == ["a"]


class TestClaimLimit:
    async def test_a_claim_stops_at_the_limit(self, store: Store) -> None:
        await add(store, *new_jobs(5))
        await store.configure(QUEUE, max_active=3, now=NOW)

        assert len(await claim(store, 2)) == 2
        assert len(await claim(store, 2)) == 1
        assert await claim(store, 2) == []

    async def test_a_limit_may_be_as_large_as_options_can_say(self, store: Store) -> None:
        await add(store, *new_jobs(2))

        settings = await store.configure(QUEUE, max_active=MOST, now=NOW)

        assert settings.max_active == MOST
        assert await store.settings(QUEUE) == settings
        assert len(await claim(store, 2)) == 2

    async def test_a_settled_job_makes_room_for_the_next(self, store: Store) -> None:
        await store.configure(QUEUE, max_active=1, now=NOW)
        job = await active(store)
        await add(store, *new_jobs(2))

        settled = await store.settle(QUEUE, [complete(job)], claim_request(2), now=NOW)

        assert settled.claimed is not None
        assert len(settled.claimed.jobs) == 1

    async def test_a_stalled_job_makes_room_for_the_next(self, store: Store) -> None:
        await store.configure(QUEUE, max_active=1, now=NOW)
        job = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)

        assert ids(await claim(store, 2, now=NOW + LOCK)) == [job.id]

    async def test_a_cancelled_or_removed_job_makes_room_for_the_next(self, store: Store) -> None:
        await store.configure(QUEUE, max_active=1, now=NOW)
        first = await active(store)
        await add(store, *new_jobs(2))
        await store.cancel(QUEUE, [first.id], now=NOW)
        second = await claim_one(store)
        await store.remove(QUEUE, [second.id], force=True, now=NOW)

        assert len(await claim(store, 2)) == 1

    async def test_a_limit_below_the_active_ones_lets_them_finish(self, store: Store) -> None:
        await add(store, *new_jobs(4))
        jobs = await claim(store, 3)
        await store.configure(QUEUE, max_active=2, now=NOW)

        settled = await store.settle(QUEUE, [complete(jobs[0])], claim_request(1), now=NOW)

        assert settled.claimed is not None
        assert settled.claimed.jobs == []

    async def test_a_limit_that_was_taken_away_limits_nothing(self, store: Store) -> None:
        await add(store, *new_jobs(5))
        await store.configure(QUEUE, max_active=1, now=NOW)
        await store.configure(QUEUE, max_active=0, now=NOW)

        assert len(await claim(store, 5)) == 5

    async def test_a_limit_holds_for_its_queue_only(self, store: Store) -> None:
        await add(store, *new_jobs(3, queue="parcels"))
        await store.configure(QUEUE, max_active=1, now=NOW)

        assert len(await claim(store, 3, queue="parcels")) == 3

    async def test_claims_at_once_never_exceed_the_limit(self, store: Store, sibling: Store) -> None:
        await add(store, *new_jobs(40))
        await store.configure(QUEUE, max_active=7, now=NOW)

        given = await asyncio.gather(*(claim(handle, 3) for _ in range(6) for handle in (store, sibling)))

        assert sum(len(jobs) for jobs in given) == 7


class TestRepeatedClaim:
    async def test_a_repeated_claim_gives_the_same_jobs(self, store: Store) -> None:
        await add(store, *new_jobs(3))
        first = await claim(store, 2, token="t")

        again = await claim(store, 2, token="t", repeat=True, now=NOW + 1)

        assert again == first
        assert (await store.count(QUEUE))["active"] == 2

    async def test_it_gives_only_those_that_are_still_held(self, store: Store) -> None:
        await add(store, *new_jobs(3))
        first, second = await claim(store, 2, token="t")
        await store.settle(QUEUE, [complete(first)], now=NOW)

        assert ids(await claim(store, 2, token="t", repeat=True)) == [second.id]

    async def test_a_claim_that_never_arrived_happens_now(self, store: Store) -> None:
        await add(store, *new_jobs(3))

        assert len(await claim(store, 2, token="t", repeat=True)) == 2

    async def test_a_repeat_is_answered_although_the_queue_is_paused(self, store: Store) -> None:
        await add(store, new_job("a"))
        await claim(store, 1, token="t")
        await store.configure(QUEUE, pause=True, now=NOW)

        assert ids(await claim(store, 1, token="t", repeat=True)) == ["a"]


class TestClaimsAtOnce:
    async def test_no_two_claims_share_a_job(self, store: Store, sibling: Store) -> None:
        jobs = await add(store, *new_jobs(60))

        given = await asyncio.gather(*(claim(handle, 4) for _ in range(10) for handle in (store, sibling)))

        taken = [id for claimed in given for id in ids(claimed)]
        assert sorted(taken) == sorted(ids(jobs))

    async def test_workers_that_settle_and_claim_at_once_run_every_job_once(self, store: Store, sibling: Store) -> None:
        jobs = await add(store, *new_jobs(60))
        numbers = count()
        ran: list[str] = []

        async def work(handle: Store) -> None:
            held = await claim(handle, 3, token=f"t{next(numbers)}")
            while held:
                ran.extend(ids(held))
                request = claim_request(3, token=f"t{next(numbers)}")
                settled = await handle.settle(QUEUE, [complete(job) for job in held], request)
                held = settled.claimed.jobs if settled.claimed else []

        await asyncio.gather(*(work(handle) for handle in (store, sibling, store, sibling)))

        assert sorted(ran) == sorted(ids(jobs))
        assert (await store.count(QUEUE))["completed"] == 60

    async def test_a_delayed_job_is_promoted_once(self, store: Store, sibling: Store) -> None:
        job = await delayed(store)

        given = await asyncio.gather(
            *(claim(handle, 2, now=NOW + DAY) for _ in range(5) for handle in (store, sibling))
        )

        assert [id for claimed in given for id in ids(claimed)] == [job.id]
