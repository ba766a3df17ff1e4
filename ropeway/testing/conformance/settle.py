from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...job.codec import decode
from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...job.retention import Retention
from ...store.contract import Store
from ...store.values import Answer
from ..arrange import (
    active,
    add,
    add_one,
    claim,
    claim_one,
    entries,
    events_of,
    read,
)
from ..factories import (
    DAY,
    FOREIGN,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    WORKER,
    claim_request,
    complete,
    fail,
    hand_back,
    lock_of,
    new_job,
    new_jobs,
    postpone,
    retry,
)
from .fixtures import NewHandle

Settling = Callable[[JobRecord], Outcome]


async def settle(store: Store, *outcomes: Outcome, now: int = NOW) -> list[Answer]:
    return (await store.settle(QUEUE, outcomes, now=now)).answers


class TestSettleComplete:
    async def test_a_completed_job_has_its_result(self, store: Store) -> None:
        held = await active(store)

        answers = await settle(store, complete(held, '{"ok":true}', keep=Retention(age=DAY)), now=NOW + 5)

        job = await read(store, held.id)
        assert answers == [Answer("done", "active")]
        assert (job.state, job.result) == ("completed", '{"ok":true}')
        assert (job.finished_at, job.expires_at) == (NOW + 5, NOW + 5 + DAY)
        assert (job.lock_until, job.token, job.worker) == (None, held.token, WORKER)
        assert (job.attempts_made, job.attempts_started) == (0, 1)

    async def test_a_completion_forgets_why_earlier_attempts_failed(self, store: Store) -> None:
        held = await active(store, attempts=2)
        await settle(store, retry(held))

        await settle(store, complete(await claim_one(store)))

        job = await read(store, held.id)
        assert (job.reason, job.attempts_made, job.attempts_started) == (None, 1, 2)

    async def test_the_result_is_announced(self, store: Store) -> None:
        held = await active(store)

        await settle(store, complete(held, '{"n":[1,2.5,null]}'))

        assert await events_of(store, "complete") == [(held.id, {"result": {"n": [1, 2.5, None]}})]

    async def test_no_result_is_not_announced(self, store: Store) -> None:
        held = await active(store)

        await settle(store, complete(held))

        assert (await read(store, held.id)).result is None
        assert await events_of(store, "complete") == [(held.id, {})]

    async def test_a_lock_that_ran_out_unnoticed_still_completes(self, store: Store) -> None:
        held = await active(store)

        answers = await settle(store, complete(held), now=NOW + DAY)

        assert answers == [Answer("done", "active")]


class TestSettleRetry:
    async def test_a_retry_uses_an_attempt_and_waits_for_its_delay(self, store: Store) -> None:
        held = await active(store, attempts=3)

        answers = await settle(store, retry(held, SECOND, reason="ValueError: no"), now=NOW + 5)

        job = await read(store, held.id)
        assert answers == [Answer("done", "active")]
        assert (job.state, job.due_at) == ("delayed", NOW + 5 + SECOND)
        assert (job.attempts_made, job.attempts_started) == (1, 1)
        assert (job.reason, job.lock_until, job.finished_at) == ("ValueError: no", None, None)

    async def test_a_retry_without_delay_waits_at_once(self, store: Store) -> None:
        held = await active(store, attempts=3)

        await settle(store, retry(held))

        job = await read(store, held.id)
        assert (job.state, job.due_at, job.attempts_made) == ("waiting", None, 1)

    async def test_the_failed_attempt_is_kept(self, store: Store) -> None:
        held = await active(store, attempts=3)

        await settle(store, retry(held, reason="ValueError: no", trace="line 1"), now=NOW + 5)

        history = await store.history(QUEUE, held.id)
        assert history is not None
        [failure] = history.failures
        assert (failure.attempt, failure.at, failure.worker) == (1, NOW + 5, WORKER)
        assert (failure.reason, failure.trace) == ("ValueError: no", "line 1")

    async def test_it_is_announced(self, store: Store) -> None:
        held = await active(store, attempts=3)

        await settle(store, retry(held, SECOND, reason="ValueError: no"))

        assert await events_of(store, "retry") == [
            (held.id, {"reason": "ValueError: no", "attempt": 1, "delay": SECOND})
        ]
        assert (await entries(store, "retry"))[0].to == "delayed"


class TestSettleFail:
    async def test_a_failed_job_has_its_reason(self, store: Store) -> None:
        held = await active(store)

        answers = await settle(store, fail(held, reason="ValueError: no", keep=Retention(age=SECOND)), now=NOW + 5)

        job = await read(store, held.id)
        assert answers == [Answer("done", "active")]
        assert (job.state, job.reason, job.attempts_made) == ("failed", "ValueError: no", 1)
        assert (job.finished_at, job.expires_at) == (NOW + 5, NOW + 5 + SECOND)
        assert (job.lock_until, job.token, job.worker) == (None, held.token, WORKER)

    async def test_the_failed_attempt_is_kept(self, store: Store) -> None:
        held = await active(store)

        await settle(store, fail(held, reason="ValueError: no", trace="line 1"))

        history = await store.history(QUEUE, held.id)
        assert history is not None
        assert [(failure.attempt, failure.reason, failure.trace) for failure in history.failures] == [
            (1, "ValueError: no", "line 1")
        ]

    async def test_it_is_announced(self, store: Store) -> None:
        held = await active(store)

        await settle(store, fail(held, reason="ValueError: no"))

        assert await events_of(store, "fail") == [(held.id, {"reason": "ValueError: no", "attempt": 1})]

    async def test_exhausted_attempts_are_announced(self, store: Store) -> None:
        held = await active(store)

        await settle(store, fail(held, exhausted=True))

        [(_, detail)] = await events_of(store, "fail")
        assert detail["exhausted"] is True


class TestSettleBack:
    async def test_a_postponed_job_uses_no_attempt(self, store: Store) -> None:
        held = await active(store)

        await settle(store, postpone(held, SECOND))

        job = await read(store, held.id)
        assert (job.state, job.due_at) == ("delayed", NOW + SECOND)
        assert (job.attempts_made, job.attempts_started, job.reason) == (0, 1, None)
        assert await events_of(store, "postpone") == [(held.id, {"due_at": NOW + SECOND})]

    async def test_a_job_postponed_by_nothing_waits_at_once(self, store: Store) -> None:
        held = await active(store)

        await settle(store, postpone(held))

        job = await read(store, held.id)
        assert (job.state, job.due_at, job.attempts_made) == ("waiting", None, 0)

    async def test_a_job_handed_back_waits_and_uses_no_attempt(self, store: Store) -> None:
        held = await active(store)

        await settle(store, hand_back(held))

        job = await read(store, held.id)
        assert (job.state, job.attempts_made, job.attempts_started) == ("waiting", 0, 1)
        assert job.lock_until is None


class TestSettleBatch:
    async def test_every_outcome_has_its_answer_in_order(self, store: Store) -> None:
        await add(store, *new_jobs(4))
        first, second, third, fourth = await claim(store, 4)
        await store.cancel(QUEUE, [second.id], now=NOW)
        await store.remove(QUEUE, [third.id], force=True, now=NOW)

        answers = await settle(
            store,
            complete(fourth),
            complete(third),
            fail(second),
            complete(first, token=FOREIGN),
            retry(first),
        )

        assert answers == [
            Answer("done", "active"),
            Answer("missing"),
            Answer("lost", "cancelled"),
            Answer("lost", "active"),
            Answer("done", "active"),
        ]

    async def test_outcomes_of_one_batch_follow_each_other(self, store: Store) -> None:
        held = await active(store)

        answers = await settle(store, complete(held), complete(held), fail(held))

        assert answers == [
            Answer("done", "active"),
            Answer("done", "completed"),
            Answer("lost", "completed"),
        ]

    async def test_all_moves_fit_into_one_batch(self, store: Store) -> None:
        await add(store, *new_jobs(5, attempts=2))
        jobs = await claim(store, 5)
        moves: list[Settling] = [complete, retry, fail, postpone, hand_back]

        await settle(store, *(move(job) for move, job in zip(moves, jobs, strict=True)))

        assert [(await read(store, job.id)).state for job in jobs] == [
            "completed",
            "waiting",
            "failed",
            "waiting",
            "waiting",
        ]

    async def test_nothing_to_settle_is_nothing_settled(self, store: Store) -> None:
        settled = await store.settle(QUEUE, [], now=NOW)

        assert (settled.answers, settled.claimed) == ([], None)

    async def test_a_large_batch_is_settled_whole(self, store: Store) -> None:
        await store.add([new_jobs(1_500)], now=NOW)
        jobs = await claim(store, 1_500)

        answers = await settle(store, *(complete(job, str(n)) for n, job in enumerate(jobs)))

        assert {answer.verdict for answer in answers} == {"done"}
        stored = await store.get(QUEUE, [job.id for job in jobs])
        assert [decode(job.result or "") for job in stored if job] == list(range(1_500))


class TestSettleThenClaim:
    async def test_settling_claims_the_next_jobs(self, store: Store) -> None:
        held = await active(store)
        waiting = await add(store, *new_jobs(2))

        settled = await store.settle(QUEUE, [complete(held)], claim_request(5, token="next"), now=NOW + 1)

        assert settled.claimed is not None
        assert [(job.id, job.token) for job in settled.claimed.jobs] == [(job.id, "next") for job in waiting]
        assert settled.claimed.now == NOW + 1

    async def test_the_claim_comes_after_the_outcomes(self, store: Store) -> None:
        held = await active(store, attempts=2)
        await add(store, new_job())

        settled = await store.settle(QUEUE, [hand_back(held)], claim_request(), now=NOW)

        assert settled.claimed is not None
        assert [job.id for job in settled.claimed.jobs] == [held.id]

    async def test_a_lost_outcome_does_not_stop_the_claim(self, store: Store) -> None:
        held = await active(store)
        waiting = await add_one(store)

        settled = await store.settle(QUEUE, [complete(held, token=FOREIGN)], claim_request(), now=NOW)

        assert settled.claimed is not None
        assert [job.id for job in settled.claimed.jobs] == [waiting.id]

    async def test_a_claim_without_outcomes_is_a_claim(self, store: Store) -> None:
        waiting = await add_one(store)

        settled = await store.settle(QUEUE, [], claim_request(), now=NOW)

        assert settled.claimed is not None
        assert [job.id for job in settled.claimed.jobs] == [waiting.id]

    async def test_a_paused_queue_settles_and_gives_nothing(self, store: Store) -> None:
        held = await active(store)
        await add(store, new_job(), new_job(delay=SECOND))
        await store.configure(QUEUE, pause=True, now=NOW)

        settled = await store.settle(QUEUE, [complete(held)], claim_request(), now=NOW)

        assert settled.answers == [Answer("done", "active")]
        assert settled.claimed is not None
        assert (settled.claimed.jobs, settled.claimed.again_at) == ([], NOW + SECOND)

    async def test_a_repeat_of_both_gives_the_same_jobs_again(self, store: Store) -> None:
        held = await active(store)
        await add(store, *new_jobs(2))
        first = await store.settle(QUEUE, [complete(held)], claim_request(1, token="next"), now=NOW)

        again = await store.settle(QUEUE, [complete(held)], claim_request(1, token="next", repeat=True), now=NOW)

        assert [answer.verdict for answer in again.answers] == ["done"]
        assert again.claimed is not None
        assert first.claimed is not None
        assert again.claimed.jobs == first.claimed.jobs


class TestSettleHistory:
    async def test_only_the_newest_failed_attempts_are_kept(self, store: Store) -> None:
        await add(store, new_job("a", attempts=10))
        for n in range(5):
            await settle(store, retry(await claim_one(store), reason=f"no {n}", stack_traces=2))

        history = await store.history(QUEUE, "a")

        assert history is not None
        assert [(failure.attempt, failure.reason) for failure in history.failures] == [
            (4, "no 3"),
            (5, "no 4"),
        ]

    async def test_the_number_of_an_attempt_counts_every_start(self, store: Store) -> None:
        held = await active(store, attempts=10)
        await settle(store, hand_back(held))

        await settle(store, retry(await claim_one(store)))

        history = await store.history(QUEUE, held.id)
        assert history is not None
        assert [failure.attempt for failure in history.failures] == [2]


class TestSettleDurability:
    async def test_what_was_acknowledged_is_there_for_the_next_handle(
        self, store: Store, new_handle: NewHandle
    ) -> None:
        held = await active(store)
        await settle(store, complete(held, '"sent"'))
        await store.close()

        other = new_handle()
        job = await read(other, held.id)
        await other.close()

        assert (job.state, job.result) == ("completed", '"sent"')

    async def test_a_renewed_lock_and_its_outcome_do_not_disturb_each_other(self, store: Store, sibling: Store) -> None:
        held = await active(store)

        [[settled], [renewed]] = await asyncio.gather(
            settle(store, complete(held)), sibling.renew(QUEUE, [lock_of(held)], LOCK, now=NOW)
        )

        assert settled.verdict == "done"
        assert renewed.verdict in ("done", "lost")
        assert (await read(store, held.id)).lock_until is None
