from __future__ import annotations

import asyncio
from typing import Any

from ...job.marks import Mark, Marking
from ...job.numbers import MOST
from ...job.record import JobRecord
from ...job.retention import Keep
from ...job.stalls import stall_reason
from ...store.contract import Store
from ...store.values import BATCH, JobUpdate, StallRules
from ..arrange import (
    active,
    add,
    cancelled,
    claim,
    claim_one,
    completed,
    entries,
    events_of,
    is_gone,
    read,
    snapshot,
)
from ..factories import (
    DAY,
    FOREIGN,
    LOCK,
    MINUTE,
    NOW,
    QUEUE,
    SECOND,
    WORKER,
    claim_request,
    hand_back,
    lock_of,
    new_job,
    new_jobs,
    token_of,
)

RULES = StallRules()


class TestTickPromotes:
    async def test_a_due_job_waits(self, store: Store) -> None:
        await add(store, new_job("a", delay=SECOND), new_job("b", delay=SECOND + 1))

        ticked = await store.tick(QUEUE, RULES, now=NOW + SECOND)

        first, second = await read(store, "a"), await read(store, "b")
        assert (first.state, first.due_at, second.state) == ("waiting", None, "delayed")
        assert (ticked.promoted, ticked.more, ticked.now) == (1, False, NOW + SECOND)

    async def test_due_jobs_are_announced_in_the_order_they_were_due(self, store: Store) -> None:
        await add(store, new_job("a", delay=3), new_job("b", delay=1), new_job("c", delay=3))

        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert [id for id, _ in await events_of(store, "promote")] == ["b", "a", "c"]

    async def test_one_tick_promotes_a_batch_at_most(self, store: Store) -> None:
        await store.add([new_jobs(BATCH + 1, delay=SECOND)], now=NOW)

        first = await store.tick(QUEUE, RULES, now=NOW + SECOND)
        second = await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert (first.promoted, first.more) == (BATCH, True)
        assert (second.promoted, second.more) == (1, False)

    async def test_a_paused_queue_promotes_too(self, store: Store) -> None:
        await add(store, new_job(delay=SECOND))
        await store.configure(QUEUE, pause=True, now=NOW)

        assert (await store.tick(QUEUE, RULES, now=NOW + SECOND)).promoted == 1

    async def test_another_queue_is_left_alone(self, store: Store) -> None:
        await add(store, new_job(queue="parcels", delay=SECOND))

        assert (await store.tick(QUEUE, RULES, now=NOW + SECOND)).promoted == 0
        assert (await store.count("parcels"))["delayed"] == 1


class TestTickRecovers:
    async def test_a_job_whose_lock_ran_out_waits_again(self, store: Store) -> None:
        held = await active(store)

        ticked = await store.tick(QUEUE, RULES, now=NOW + LOCK)

        job = await read(store, held.id)
        assert (ticked.stalled, ticked.given_up) == ([held.id], [])
        assert (job.state, job.stalled_count, job.attempts_made) == ("waiting", 1, 0)
        assert (job.token, job.lock_until) == (None, None)

    async def test_a_lock_holds_until_its_last_instant(self, store: Store) -> None:
        held = await active(store)

        ticked = await store.tick(QUEUE, RULES, now=NOW + LOCK - 1)

        assert ticked.stalled == []
        assert await read(store, held.id) == held

    async def test_a_renewed_lock_is_not_recovered(self, store: Store) -> None:
        held = await active(store)
        await store.renew(QUEUE, [lock_of(held)], LOCK, now=NOW + LOCK)

        assert (await store.tick(QUEUE, RULES, now=NOW + LOCK)).stalled == []

    async def test_a_lock_renewed_to_an_earlier_end_runs_out_then(self, store: Store) -> None:
        held = await active(store)
        await store.renew(QUEUE, [lock_of(held)], SECOND, now=NOW)

        assert (await store.tick(QUEUE, RULES, now=NOW + SECOND)).stalled == [held.id]

    async def test_recovery_and_renewal_at_once_do_not_both_succeed(self, store: Store, sibling: Store) -> None:
        held = await active(store)

        ticked, [renewed] = await asyncio.gather(
            store.tick(QUEUE, RULES, now=NOW + LOCK),
            sibling.renew(QUEUE, [lock_of(held)], LOCK, now=NOW + LOCK),
        )

        assert (ticked.stalled, renewed.verdict) in (([], "done"), ([held.id], "lost"))

    async def test_recovery_never_takes_the_job_from_its_next_holder(self, store: Store, sibling: Store) -> None:
        held = await active(store)

        _, settled = await asyncio.gather(
            store.tick(QUEUE, RULES, now=NOW + LOCK),
            sibling.settle(QUEUE, [hand_back(held)], claim_request(token="next"), now=NOW + LOCK),
        )

        job = await read(store, held.id)
        assert settled.claimed is not None
        assert [given.token for given in settled.claimed.jobs] == ["next"]
        assert (job.state, job.token) == ("active", "next")

    async def test_many_recoveries_at_once_stall_a_job_once(self, store: Store, sibling: Store) -> None:
        held = await active(store)

        ticks = await asyncio.gather(
            *(handle.tick(QUEUE, RULES, now=NOW + LOCK) for _ in range(5) for handle in (store, sibling))
        )

        assert [id for ticked in ticks for id in ticked.stalled] == [held.id]
        assert (await read(store, held.id)).stalled_count == 1

    async def test_the_stall_is_in_the_history(self, store: Store) -> None:
        held = await active(store)

        await store.tick(QUEUE, RULES, now=NOW + LOCK)

        history = await store.history(QUEUE, held.id)
        assert history is not None
        [failure] = history.failures
        assert (failure.attempt, failure.at, failure.worker) == (1, NOW + LOCK, WORKER)
        assert WORKER in failure.reason

    async def test_it_is_announced_with_the_worker_that_vanished(self, store: Store) -> None:
        held = await active(store)

        await store.tick(QUEUE, RULES, now=NOW + LOCK)

        [(id, detail)] = await events_of(store, "stall")
        assert (id, detail["worker"], detail["stalled_count"]) == (held.id, WORKER, 1)

    async def test_one_tick_recovers_a_batch_at_most(self, store: Store) -> None:
        await store.add([new_jobs(BATCH + 1)], now=NOW)
        await claim(store, BATCH + 1)

        first = await store.tick(QUEUE, RULES, now=NOW + LOCK)
        second = await store.tick(QUEUE, RULES, now=NOW + LOCK)

        assert (len(first.stalled), first.more) == (BATCH, True)
        assert (len(second.stalled), second.more) == (1, False)


class TestTickGivesUp:
    async def test_a_job_that_stalls_once_too_often_has_failed(self, store: Store) -> None:
        held = await active(store)
        await store.tick(QUEUE, RULES, now=NOW + LOCK)
        await claim_one(store, now=NOW + LOCK, worker="worker-2")

        ticked = await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)

        job = await read(store, held.id)
        assert (ticked.stalled, ticked.given_up) == ([], [held.id])
        assert (job.state, job.stalled_count, job.attempts_made) == ("failed", 2, 0)
        assert (job.finished_at, job.expires_at) == (NOW + 2 * LOCK, NOW + 2 * LOCK + 7 * DAY)
        assert (job.token, job.lock_until) == (None, None)
        assert job.reason is not None
        assert "stalled more than allowable limit" in job.reason
        assert "worker-2" in job.reason

    async def test_it_is_announced_with_the_reason(self, store: Store) -> None:
        held = await active(store)

        await store.tick(QUEUE, StallRules(max_stalled_count=0), now=NOW + LOCK)

        [(id, detail)] = await events_of(store, "give up")
        assert (id, detail["worker"], detail["stalled_count"]) == (held.id, WORKER, 1)
        assert detail["reason"] == (await read(store, held.id)).reason

    async def test_a_higher_limit_allows_more_stalls(self, store: Store) -> None:
        await active(store)
        rules = StallRules(max_stalled_count=3)

        for n in range(1, 4):
            ticked = await store.tick(QUEUE, rules, now=NOW + n * LOCK)
            assert len(ticked.stalled) == 1
            await claim_one(store, now=NOW + n * LOCK)

        assert len((await store.tick(QUEUE, rules, now=NOW + 4 * LOCK)).given_up) == 1

    async def test_a_job_may_be_allowed_to_stall_as_often_as_options_can_say(self, store: Store) -> None:
        job = await active(store)

        ticked = await store.tick(QUEUE, StallRules(max_stalled_count=MOST), now=NOW + LOCK)

        assert (ticked.stalled, ticked.given_up) == ([job.id], [])

    async def test_a_queue_may_fail_what_stalls_at_once(self, store: Store) -> None:
        held = await active(store)

        ticked = await store.tick(QUEUE, StallRules(5, on_stalled="fail"), now=NOW + LOCK)

        assert ticked.given_up == [held.id]

    async def test_a_stall_can_count_as_an_attempt(self, store: Store) -> None:
        held = await active(store, attempts=3)

        ticked = await store.tick(QUEUE, StallRules(counts_as_attempt=True), now=NOW + LOCK)

        job = await read(store, held.id)
        assert ticked.stalled == [held.id]
        assert (job.attempts_made, job.stalled_count) == (1, 1)

    async def test_a_stall_that_uses_the_last_attempt_ends_the_job(self, store: Store) -> None:
        held = await active(store, attempts=1)

        ticked = await store.tick(QUEUE, StallRules(5, counts_as_attempt=True), now=NOW + LOCK)

        job = await read(store, held.id)
        assert ticked.given_up == [held.id]
        assert (job.state, job.attempts_made) == ("failed", 1)

    async def test_it_is_kept_as_its_options_say(self, store: Store) -> None:
        held = await active(store, remove_on_fail=Keep(age=5))

        await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)

        assert (await read(store, held.id)).expires_at == NOW + LOCK + 5 * SECOND

    async def test_a_job_that_is_not_kept_goes_in_the_same_step(self, store: Store) -> None:
        held = await active(store, remove_on_fail=True)

        ticked = await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)

        assert ticked.given_up == [held.id]
        assert await is_gone(store, held.id)
        assert await events_of(store, "remove") == [(held.id, {"prev": "failed"})]


class TestTickSpares:
    """A job that stalled before is given up only for a stall that no other job of its process can have caused."""

    async def test_a_job_that_ran_beside_others_waits_again(self, store: Store) -> None:
        held = await _claimed_again(store)

        ticked = await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)

        job = await read(store, held.id)
        assert (ticked.stalled, ticked.given_up) == ([held.id], [])
        assert (job.state, job.stalled_count, job.token, job.lock_until) == ("waiting", 2, None, None)
        assert job.reason is not None
        assert job.reason.startswith(f"stalled: worker {WORKER} ")
        assert [id for id, _ in await events_of(store, "stall")] == [held.id, held.id]

    async def test_a_job_that_ran_alone_is_given_up(self, store: Store) -> None:
        held = await _claimed_again(store)
        await _mark(store, held, alone=True)

        ticked = await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)

        assert (ticked.stalled, ticked.given_up) == ([], [held.id])

    async def test_a_renewed_lock_keeps_the_mark(self, store: Store) -> None:
        held = await _claimed_again(store)
        await _mark(store, held, alone=True)
        await store.renew(QUEUE, [lock_of(held)], LOCK, now=NOW + LOCK + SECOND)

        assert (await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK + SECOND)).given_up == [held.id]

    async def test_a_mark_can_be_withdrawn(self, store: Store) -> None:
        held = await _claimed_again(store)
        await _mark(store, held, alone=True)
        await _mark(store, held, alone=False)

        assert (await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)).stalled == [held.id]

    async def test_a_mark_is_of_one_attempt(self, store: Store) -> None:
        held = await _claimed_again(store)
        await _mark(store, held, alone=True)
        await store.settle(QUEUE, [hand_back(held)], claim_request(isolates=True), now=NOW + LOCK)

        assert (await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)).stalled == [held.id]

    async def test_a_stale_token_marks_nothing(self, store: Store) -> None:
        held = await _claimed_again(store)

        [answer] = await store.update(QUEUE, [JobUpdate(held.id, FOREIGN, alone=True)], now=NOW + LOCK)

        assert answer.verdict == "lost"
        assert (await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)).stalled == [held.id]

    async def test_a_mark_shows_nowhere_else(self, store: Store) -> None:
        held = await _claimed_again(store)
        before = await snapshot(store), await entries(store)

        await _mark(store, held, alone=True)

        assert (await snapshot(store), await entries(store)) == before

    async def test_stalls_of_a_job_that_came_further_no_longer_count(self, store: Store) -> None:
        held = await _claimed_again(store)
        marking = Marking((Mark("step:a", "1"),))
        change = JobUpdate(held.id, token_of(held), alone=True, clears_stalls=True, marking=marking)
        assert (await store.update(QUEUE, [change], now=NOW + LOCK))[0].verdict == "done"
        assert (await read(store, held.id)).stalled_count == 0

        assert (await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)).stalled == [held.id]
        again = await claim_one(store, now=NOW + 2 * LOCK)
        assert (again.stalled_count, [mark.name for mark in again.marks]) == (1, ["step:a"])

    async def test_a_stale_token_clears_no_stalls(self, store: Store) -> None:
        held = await _claimed_again(store)

        [answer] = await store.update(QUEUE, [JobUpdate(held.id, FOREIGN, clears_stalls=True)], now=NOW + LOCK)

        assert answer.verdict == "lost"
        assert (await read(store, held.id)).stalled_count == 1

    async def test_a_job_that_does_not_run_keeps_its_stalls(self, store: Store) -> None:
        stalled = await active(store)
        await store.tick(QUEUE, RULES, now=NOW + LOCK)

        [answer] = await store.update(QUEUE, [JobUpdate(stalled.id, clears_stalls=True)], now=NOW + LOCK)

        assert answer.verdict == "done"
        assert (await read(store, stalled.id)).stalled_count == 1

    async def test_a_repeated_claim_keeps_the_mark(self, store: Store) -> None:
        held = await _claimed_again(store)
        await _mark(store, held, alone=True)
        request = claim_request(token=held.token, isolates=True, repeat=True)

        assert (await store.claim(request, now=NOW + LOCK)).jobs == [held]
        assert (await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)).given_up == [held.id]

    async def test_the_first_stall_ends_a_job_that_may_not_stall(self, store: Store) -> None:
        await add(store, new_job())
        held = await claim_one(store, isolates=True)

        assert (await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)).given_up == [held.id]

    async def test_a_queue_that_fails_what_stalls_spares_nobody(self, store: Store) -> None:
        held = await _claimed_again(store)

        assert (await store.tick(QUEUE, StallRules(on_stalled="fail"), now=NOW + 2 * LOCK)).given_up == [held.id]

    async def test_a_spared_stall_uses_no_attempt(self, store: Store) -> None:
        rules = StallRules(9, counts_as_attempt=True)
        held = await _claimed_again(store, rules, attempts=2)
        assert held.attempts_made == 1

        ticked = await store.tick(QUEUE, rules, now=NOW + 2 * LOCK)

        job = await read(store, held.id)
        assert ticked.stalled == [held.id]
        assert (job.state, job.attempts_made, job.stalled_count) == ("waiting", 1, 2)

    async def test_many_are_judged_one_by_one(self, store: Store) -> None:
        await add(store, *(new_job(id) for id in ("a", "b", "c")))
        await claim(store, 2)
        await store.tick(QUEUE, RULES, now=NOW + LOCK)
        one, _, fresh = await claim(store, 3, now=NOW + LOCK, isolates=True)
        await _mark(store, one, alone=True)

        ticked = await store.tick(QUEUE, RULES, now=NOW + 2 * LOCK)

        assert (ticked.given_up, sorted(ticked.stalled), fresh.id) == (["a"], ["b", "c"], "c")


class TestTickSaysWhy:
    async def test_a_stall_that_used_the_last_attempt_says_so(self, store: Store) -> None:
        held = await active(store, attempts=1)

        await store.tick(QUEUE, StallRules(5, counts_as_attempt=True), now=NOW + LOCK)

        job = await read(store, held.id)
        assert job.reason == stall_reason("last attempt", WORKER, NOW)
        [(_, detail)] = await events_of(store, "give up")
        assert detail["exhausted"] is True

    async def test_too_many_stalls_say_so_and_exhaust_no_attempts(self, store: Store) -> None:
        held = await active(store)

        await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)

        assert (await read(store, held.id)).reason == stall_reason("too often", WORKER, NOW)
        [(_, detail)] = await events_of(store, "give up")
        assert "exhausted" not in detail

    async def test_a_queue_that_fails_what_stalls_says_so(self, store: Store) -> None:
        held = await active(store)

        await store.tick(QUEUE, StallRules(5, on_stalled="fail"), now=NOW + LOCK)

        assert (await read(store, held.id)).reason == stall_reason("at once", WORKER, NOW)

    async def test_the_reason_says_how_the_process_ended_where_that_is_known(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))
        await claim_one(store, worker="host:7:abc")
        await claim_one(store, worker="host:8:def")
        ends = {"host:7": "was killed by SIGKILL", "host:9": "ended with exit code 1"}

        await store.tick(QUEUE, StallRules(0, ends=ends), now=NOW + LOCK)

        assert (await read(store, "a")).reason == stall_reason("too often", "host:7:abc", NOW, ends)
        assert "host:7:abc was killed by SIGKILL and last renewed" in str((await read(store, "a")).reason)
        assert (await read(store, "b")).reason == stall_reason("too often", "host:8:def", NOW)


async def _claimed_again(store: Store, rules: StallRules = RULES, **job: Any) -> JobRecord:
    """A job that stalled once, held by a claimer that marks what runs alone."""
    await active(store, **job)
    await store.tick(QUEUE, rules, now=NOW + LOCK)
    return await claim_one(store, now=NOW + LOCK, isolates=True)


async def _mark(store: Store, held: JobRecord, *, alone: bool) -> None:
    [answer] = await store.update(QUEUE, [JobUpdate(held.id, token_of(held), alone=alone)], now=NOW + LOCK)
    assert answer.verdict == "done"


class TestTickTimer:
    async def test_nothing_to_come_needs_no_timer(self, store: Store) -> None:
        await add(store, new_job())

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at is None

    async def test_the_next_delay_sets_the_timer(self, store: Store) -> None:
        await add(store, new_job(delay=2 * SECOND), new_job(delay=SECOND))

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at == NOW + SECOND

    async def test_the_next_lock_sets_the_timer(self, store: Store) -> None:
        await active(store)
        await add(store, new_job(delay=DAY))

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at == NOW + LOCK

    async def test_a_renewal_moves_the_timer(self, store: Store) -> None:
        held = await active(store)
        await store.renew(QUEUE, [lock_of(held)], LOCK, now=NOW + SECOND)

        assert (await store.tick(QUEUE, RULES, now=NOW + SECOND)).next_at == NOW + SECOND + LOCK

    async def test_the_next_retention_sets_the_timer(self, store: Store) -> None:
        await completed(store)

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at == NOW + DAY

    async def test_a_job_kept_for_ever_needs_no_timer(self, store: Store) -> None:
        await cancelled(store, remove_on_fail=False)

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at is None

    async def test_what_this_tick_did_is_not_to_come(self, store: Store) -> None:
        await active(store)
        await add(store, new_job(delay=SECOND), new_job(delay=DAY))

        assert (await store.tick(QUEUE, RULES, now=NOW + LOCK)).next_at == NOW + DAY

    async def test_another_queue_has_its_own_timer(self, store: Store) -> None:
        await add(store, new_job(queue="parcels", delay=SECOND))

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at is None


class TestTick:
    async def test_an_unknown_queue_has_nothing_to_do(self, store: Store) -> None:
        ticked = await store.tick("parcels", RULES, now=NOW)

        assert (ticked.promoted, ticked.stalled, ticked.given_up, ticked.removed) == (0, [], [], 0)
        assert (ticked.next_at, ticked.more, ticked.now) == (None, False, NOW)

    async def test_nothing_due_is_nothing_done(self, store: Store) -> None:
        await active(store)
        await completed(store)
        await add(store, new_job(), new_job(delay=DAY))
        before = await snapshot(store), await entries(store)

        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert (await snapshot(store), await entries(store)) == before

    async def test_a_clock_that_jumps_back_revives_no_lock(self, store: Store) -> None:
        held = await active(store)
        await store.tick(QUEUE, RULES, now=NOW + LOCK)

        answers = await store.renew(QUEUE, [lock_of(held)], LOCK, now=NOW - 60 * MINUTE)

        assert [answer.verdict for answer in answers] == ["lost"]

    async def test_old_metrics_go(self, store: Store) -> None:
        await add(store, new_job())
        await store.tick(QUEUE, RULES, now=NOW + 14 * DAY - MINUTE)
        assert len(await store.metrics(QUEUE)) == 1

        await store.tick(QUEUE, RULES, now=NOW + 14 * DAY + MINUTE)

        assert await store.metrics(QUEUE) == []
