"""Jobs that must be started by a certain time."""

from __future__ import annotations

from ...job.dedupe import DedupeRule
from ...job.extras import Extras
from ...job.failure import EXPIRED_REASON
from ...job.states import State
from ...store.contract import Store
from ...store.values import StallRules
from ..arrange import add, add_one, claim, claim_one, events_of, read
from ..factories import (
    ELSEWHERE,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    fail,
    hand_back,
    new_flow,
    new_job,
    retry,
)
from .cases import for_each

SOON = Extras(start_within=SECOND)
RULES = StallRules()


class TestExpiry:
    async def test_a_claim_fails_a_job_that_is_too_old(self, store: Store) -> None:
        await add(store, new_job("late", extras=SOON), new_job("other"))

        claimed = await claim(store, 5, now=NOW + SECOND)

        job = await read(store, "late")
        assert [one.id for one in claimed] == ["other"]
        assert (job.state, job.reason, job.finished_at) == ("failed", EXPIRED_REASON, NOW + SECOND)
        assert (job.attempts_made, job.attempts_started, job.token) == (0, 0, None)

    async def test_before_that_it_is_claimed(self, store: Store) -> None:
        await add_one(store, extras=SOON)

        assert (await claim_one(store, now=NOW + SECOND - 1)).extras == SOON

    async def test_a_tick_fails_it(self, store: Store) -> None:
        await add_one(store, id="late", extras=SOON)

        ticked = await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert ticked.expired == 1
        assert (await read(store, "late")).state == "failed"
        assert (await store.count(QUEUE))["failed"] == 1

    async def test_a_tick_says_when_the_next_one_expires(self, store: Store) -> None:
        await add_one(store, extras=SOON)
        await add_one(store, extras=Extras(start_by=NOW + 2 * SECOND))

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at == NOW + SECOND
        assert (await store.tick(QUEUE, RULES, now=NOW + SECOND)).next_at == NOW + 2 * SECOND

    async def test_an_instant_counts_like_a_duration(self, store: Store) -> None:
        await add_one(store, id="late", extras=Extras(start_by=NOW + 5))

        assert await claim(store, now=NOW + 5) == []

        assert (await read(store, "late")).state == "failed"

    @for_each("state", ["delayed", "waiting-children"])
    async def test_it_counts_for_jobs_that_cannot_start_yet(self, store: Store, state: State) -> None:
        job = new_job("late", extras=SOON, delay=0 if state == "waiting-children" else 10 * SECOND)
        bundle = new_flow(job, new_job(queue=ELSEWHERE)) if state == "waiting-children" else [job]
        await store.add([bundle], now=NOW)

        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert (await read(store, "late")).state == "failed"

    async def test_a_job_that_was_started_does_not_expire(self, store: Store) -> None:
        await add_one(store, id="job", extras=SOON)
        held = await claim_one(store)
        await store.settle(QUEUE, [retry(held)], now=NOW)
        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert [job.id for job in await claim(store, now=NOW + SECOND)] == ["job"]

    async def test_nor_one_that_was_handed_back_or_stalled(self, store: Store) -> None:
        await add_one(store, id="job", extras=SOON)
        await store.settle(QUEUE, [hand_back(await claim_one(store))], now=NOW)
        await claim_one(store)
        await store.tick(QUEUE, RULES, now=NOW + LOCK)

        assert [job.id for job in await claim(store, now=NOW + LOCK)] == ["job"]

    async def test_nor_one_whose_attempts_were_reset(self, store: Store) -> None:
        await add_one(store, id="job", extras=SOON)
        await store.settle(QUEUE, [fail(await claim_one(store))], now=NOW)
        await store.retry(QUEUE, ["job"], reset=True, now=NOW)

        assert (await store.tick(QUEUE, RULES, now=NOW + SECOND)).expired == 0

        assert (await read(store, "job")).state == "waiting"

    async def test_it_frees_its_key(self, store: Store) -> None:
        await add_one(store, extras=Extras(start_within=SECOND, dedupe=DedupeRule("key")))

        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert await store.dedupe(QUEUE, "key", now=NOW + SECOND) is None

    async def test_a_claim_of_a_paused_queue_or_of_other_names_fails_it_too(self, store: Store) -> None:
        await add_one(store, id="late", extras=SOON)
        await store.configure(QUEUE, pause=True, now=NOW)

        assert await claim(store, names=("other",), now=NOW + SECOND) == []

        assert (await read(store, "late")).state == "failed"

    async def test_a_settle_that_claims_does_not_start_it(self, store: Store) -> None:
        await add_one(store)
        held = await claim_one(store)
        await add_one(store, id="late", extras=SOON)

        settled = await store.settle(QUEUE, [complete(held)], claim_request(), now=NOW + SECOND)

        assert settled.claimed is not None
        assert settled.claimed.jobs == []
        assert (await read(store, "late")).state == "failed"

    async def test_a_retry_by_hand_gives_it_time(self, store: Store) -> None:
        await add_one(store, id="late", extras=SOON)
        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        await store.retry(QUEUE, ["late"], now=NOW + SECOND)

        assert [job.id for job in await claim(store, now=NOW + 2 * SECOND)] == ["late"]

    async def test_a_removed_or_cancelled_job_leaves_nothing_behind(self, store: Store) -> None:
        await add(store, new_job("a", extras=SOON), new_job("b", extras=SOON))
        await store.remove(QUEUE, ["a"], now=NOW)
        await store.cancel(QUEUE, ["b"], now=NOW)

        ticked = await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert (ticked.expired, (await read(store, "b")).state) == (0, "cancelled")

    async def test_it_is_announced(self, store: Store) -> None:
        await add_one(store, id="late", extras=SOON)

        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        assert await events_of(store, "expire") == [("late", {"reason": EXPIRED_REASON})]
        [metric] = [metric for metric in await store.metrics(QUEUE) if metric.failed]
        assert metric.failed == 1

    async def test_its_parent_is_told(self, store: Store) -> None:
        root, child = new_flow(new_job("root", queue=ELSEWHERE), new_job("child", extras=SOON))
        await store.add([[root, child]], now=NOW)

        await store.tick(QUEUE, RULES, now=NOW + SECOND)

        parent = await read(store, "root", ELSEWHERE)
        assert (parent.state, parent.reason) == ("failed", f"child {QUEUE}/child failed: {EXPIRED_REASON}")

    async def test_many_expire_in_batches_and_none_is_started(self, store: Store) -> None:
        jobs = [new_job(extras=SOON) for _ in range(1_200)]
        await store.add([jobs], now=NOW)

        claims = [await claim(store, 5, now=NOW + SECOND) for _ in range(3)]

        assert claims == [[]] * 3
        assert (await store.count(QUEUE))["failed"] == 1_200
