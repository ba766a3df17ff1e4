from __future__ import annotations

import asyncio

from ...store.contract import Store
from ...store.values import JobUpdate, Lock, StallRules
from ..arrange import active, add, add_one, cancelled, claim, claim_one, completed, entries, read, snapshot
from ..factories import DAY, FOREIGN, LOCK, NOW, QUEUE, SECOND, hand_back, lock_of, new_jobs


async def verdicts(store: Store, *locks: Lock, now: int = NOW, queue: str = QUEUE) -> list[str]:
    return [answer.verdict for answer in await store.renew(queue, locks, LOCK, now=now)]


class TestRenew:
    async def test_a_lock_is_extended_from_now(self, store: Store) -> None:
        held = await active(store)

        assert await verdicts(store, lock_of(held), now=NOW + SECOND) == ["done"]

        job = await read(store, held.id)
        assert (job.lock_until, job.renewed_at) == (NOW + SECOND + LOCK, NOW + SECOND)
        assert (job.started_at, job.token, job.attempts_started) == (NOW, held.token, 1)

    async def test_a_lock_can_be_shortened(self, store: Store) -> None:
        held = await active(store)

        await store.renew(QUEUE, [lock_of(held)], SECOND, now=NOW)

        assert (await read(store, held.id)).lock_until == NOW + SECOND

    async def test_a_lock_that_ran_out_but_was_not_recovered_still_holds(self, store: Store) -> None:
        held = await active(store)

        assert await verdicts(store, lock_of(held), now=NOW + DAY) == ["done"]
        assert (await store.tick(QUEUE, StallRules(), now=NOW + DAY)).stalled == []

    async def test_a_lost_lock_says_what_became_of_the_job(self, store: Store) -> None:
        held = await active(store)
        await store.cancel(QUEUE, [held.id], now=NOW)

        [answer] = await store.renew(QUEUE, [lock_of(held)], LOCK, now=NOW)

        assert (answer.verdict, answer.state) == ("lost", "cancelled")

    async def test_a_foreign_token_extends_nothing(self, store: Store) -> None:
        held = await active(store)

        assert await verdicts(store, Lock(held.id, FOREIGN), now=NOW + 1) == ["lost"]
        assert await read(store, held.id) == held

    async def test_a_stale_token_extends_nothing(self, store: Store) -> None:
        stale = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)
        current = await claim_one(store, now=NOW + LOCK)

        assert await verdicts(store, lock_of(stale), now=NOW + LOCK) == ["lost"]
        assert await read(store, stale.id) == current

    async def test_a_recovered_lock_is_lost(self, store: Store) -> None:
        held = await active(store)
        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)

        assert await verdicts(store, lock_of(held), now=NOW + LOCK) == ["lost"]

    async def test_a_lock_handed_back_is_lost(self, store: Store) -> None:
        held = await active(store)
        await store.settle(QUEUE, [hand_back(held)], now=NOW)
        before = await snapshot(store)

        assert await verdicts(store, lock_of(held)) == ["lost"]
        assert await snapshot(store) == before

    async def test_a_finished_job_keeps_no_lock_for_its_last_token(self, store: Store) -> None:
        done = await completed(store)

        assert await verdicts(store, lock_of(done)) == ["lost"]
        assert await read(store, done.id) == done

    async def test_every_lock_has_its_answer_in_order(self, store: Store) -> None:
        gone = await cancelled(store)
        await add(store, *new_jobs(2))
        first, second = await claim(store, 2)

        answers = await verdicts(
            store,
            lock_of(second),
            Lock("nobody", FOREIGN),
            Lock(gone.id, FOREIGN),
            Lock(first.id, FOREIGN),
            lock_of(first),
        )

        assert answers == ["done", "missing", "lost", "lost", "done"]

    async def test_a_job_of_another_queue_is_missing(self, store: Store) -> None:
        held = await active(store)

        assert await verdicts(store, lock_of(held), queue="parcels") == ["missing"]

    async def test_a_waiting_job_has_no_lock(self, store: Store) -> None:
        job = await add_one(store)

        assert await verdicts(store, Lock(job.id, FOREIGN)) == ["lost"]

    async def test_it_announces_nothing(self, store: Store) -> None:
        held = await active(store)
        before = await entries(store)

        await verdicts(store, lock_of(held), now=NOW + 1)

        assert await entries(store) == before

    async def test_nothing_to_renew_is_nothing_renewed(self, store: Store) -> None:
        assert await verdicts(store) == []

    async def test_what_is_told_of_the_jobs_meanwhile_is_no_hindrance(self, store: Store, sibling: Store) -> None:
        await add(store, *new_jobs(50))
        held = await claim(store, 50)
        ids = [job.id for job in held]

        for now in range(NOW + 1, NOW + 21):
            told = [JobUpdate(job.id, job.token, progress=str(now), log=("on",)) for job in held]
            answers, _ = await asyncio.gather(
                verdicts(store, *map(lock_of, held), now=now), sibling.update(QUEUE, told, now=now)
            )

            assert answers == ["done"] * 50
            renewed = [job for job in await store.get(QUEUE, ids) if job is not None]
            assert [job.lock_until for job in renewed] == [now + LOCK] * 50
            assert [job.progress for job in renewed] == [str(now)] * 50
