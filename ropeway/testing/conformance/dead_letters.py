"""Dead letters: what a job that failed for good leaves in another queue."""

from __future__ import annotations

from msgspec.structs import replace

from ...job.dead_letters import dead_letter_id
from ...job.extras import Extras, Origin
from ...job.failure import EXPIRED_REASON
from ...job.retention import NOT_AT_ALL
from ...store.contract import Store
from ...store.values import StallRules
from ..arrange import active, add_one, claim, claim_one, events_of, is_gone, read
from ..factories import ELSEWHERE, LOCK, NOW, QUEUE, SECOND, complete, fail, new_flow, new_job, retry

DEAD = "dead"
LETTER = Extras(dead_letter=DEAD)


async def letters(store: Store) -> list[tuple[str, Origin | None]]:
    found = await claim(store, 10, queue=DEAD, now=NOW + LOCK)
    return [(job.id, job.extras.origin if job.extras else None) for job in found]


class TestDeadLetters:
    async def test_a_failed_job_leaves_a_copy_with_its_origin(self, store: Store) -> None:
        held = await active(store, id="job", data='{"n":1}', attempts=3, extras=LETTER)

        await store.settle(QUEUE, [fail(held, reason='no "luck"\n')], now=NOW + 5)

        letter = await read(store, dead_letter_id(QUEUE, "job", NOW + 5), DEAD)
        assert (letter.state, letter.name, letter.data) == ("waiting", held.name, '{"n":1}')
        assert (letter.options, letter.created_at, letter.attempts_made) == (held.options, NOW + 5, 0)
        assert letter.extras == Extras(origin=Origin(QUEUE, "job", 'no "luck"\n', 1, NOW + 5))
        assert (await read(store, "job")).state == "failed"

    async def test_the_origin_says_priority_and_tags(self, store: Store) -> None:
        held = await active(store, id="job", priority=-7, tags=("eu", 'a "b"'), extras=LETTER)

        await store.settle(QUEUE, [fail(held)], now=NOW)

        origin = Origin(QUEUE, "job", "", 1, NOW, priority=-7, tags=("eu", 'a "b"'))
        [(_, found)] = await letters(store)
        assert found is not None
        assert replace(found, reason=origin.reason) == origin
        letter = await read(store, dead_letter_id(QUEUE, "job", NOW), DEAD)
        assert (letter.priority, letter.tags) == (0, ())

    async def test_it_is_added_like_any_job(self, store: Store) -> None:
        held = await active(store, id="job", extras=LETTER)

        await store.settle(QUEUE, [fail(held)], now=NOW)

        assert await events_of(store, "add", DEAD) == [(dead_letter_id(QUEUE, "job", NOW), {"name": held.name})]
        assert (await store.count(DEAD))["waiting"] == 1
        assert DEAD in await store.queues()

    async def test_a_job_that_completes_or_is_retried_or_cancelled_leaves_none(self, store: Store) -> None:
        done = await active(store, extras=LETTER)
        await store.settle(QUEUE, [complete(done)], now=NOW)
        again = await active(store, attempts=2, extras=LETTER)
        await store.settle(QUEUE, [retry(again)], now=NOW)
        await store.cancel(QUEUE, [again.id], now=NOW)

        assert await letters(store) == []

    async def test_a_job_that_is_given_up_leaves_one(self, store: Store) -> None:
        await active(store, id="job", extras=LETTER)

        await store.tick(QUEUE, StallRules(on_stalled="fail"), now=NOW + LOCK)

        reason = (await read(store, "job")).reason
        origin = Origin(QUEUE, "job", reason or "", 0, NOW + LOCK)
        assert await letters(store) == [(dead_letter_id(QUEUE, "job", NOW + LOCK), origin)]

    async def test_a_job_that_expires_leaves_one(self, store: Store) -> None:
        await add_one(store, id="job", extras=Extras(start_within=SECOND, dead_letter=DEAD))

        await store.tick(QUEUE, StallRules(), now=NOW + SECOND)

        origin = Origin(QUEUE, "job", EXPIRED_REASON, 0, NOW + SECOND)
        assert await letters(store) == [(dead_letter_id(QUEUE, "job", NOW + SECOND), origin)]

    async def test_a_parent_that_fails_by_a_child_leaves_one(self, store: Store) -> None:
        root, child = new_flow(new_job("root", extras=LETTER), new_job("child", queue=ELSEWHERE))
        await store.add([[root, child]], now=NOW)
        held = await claim_one(store, queue=ELSEWHERE)

        await store.settle(ELSEWHERE, [fail(held)], now=NOW)

        [(id, origin)] = await letters(store)
        assert id == dead_letter_id(QUEUE, "root", NOW)
        assert origin == Origin(QUEUE, "root", f"child {ELSEWHERE}/child failed: no luck", 0, NOW)

    async def test_each_failure_leaves_another(self, store: Store) -> None:
        held = await active(store, id="job", extras=LETTER)
        await store.settle(QUEUE, [fail(held)], now=NOW)
        await store.retry(QUEUE, ["job"], now=NOW + 1)
        await store.settle(QUEUE, [fail(await claim_one(store, now=NOW + 1))], now=NOW + 2)

        assert [id for id, _ in await letters(store)] == [dead_letter_id(QUEUE, "job", at) for at in (NOW, NOW + 2)]

    async def test_failures_in_the_same_instant_leave_one(self, store: Store) -> None:
        held = await active(store, id="job", extras=LETTER)
        await store.settle(QUEUE, [fail(held)], now=NOW)
        [running] = await claim(store, queue=DEAD)
        await store.retry(QUEUE, ["job"], now=NOW)

        await store.settle(QUEUE, [fail(await claim_one(store), reason="again")], now=NOW)

        assert await read(store, running.id, DEAD) == running

    async def test_a_stale_token_leaves_none(self, store: Store) -> None:
        held = await active(store, extras=LETTER)

        await store.settle(QUEUE, [fail(held, token="another")], now=NOW)

        assert await letters(store) == []

    async def test_a_repeated_settle_leaves_no_second(self, store: Store) -> None:
        held = await active(store, extras=LETTER)

        for at in (NOW, NOW + 1):
            await store.settle(QUEUE, [fail(held)], now=at)

        assert len(await letters(store)) == 1

    async def test_it_outlives_a_job_that_is_removed_at_once(self, store: Store) -> None:
        held = await active(store, id="job", extras=LETTER)

        await store.settle(QUEUE, [fail(held, keep=NOT_AT_ALL)], now=NOW)

        assert await is_gone(store, "job")
        assert len(await letters(store)) == 1

    async def test_many_fail_in_one_call(self, store: Store) -> None:
        for number in range(5):
            await add_one(store, id=f"job-{number}", extras=LETTER if number % 2 else None)
        held = await claim(store, 5)

        await store.settle(QUEUE, [fail(job) for job in held], now=NOW)

        assert [id for id, _ in await letters(store)] == [dead_letter_id(QUEUE, f"job-{n}", NOW) for n in (1, 3)]
