"""Webhook deliveries: what a job with a webhook leaves in the queue of deliveries when it ends."""

from __future__ import annotations

from ...job.dead_letters import dead_letter_id
from ...job.extras import Extras, Origin, WebhookRule
from ...job.failure import EXPIRED_REASON
from ...job.retention import NOT_AT_ALL
from ...job.states import FINAL
from ...job.webhooks import DELIVERIES, DELIVERY_OPTIONS, delivery_id
from ...store.contract import Store
from ...store.values import StallRules
from ..arrange import active, add_one, claim, claim_one, events_of, is_gone, read
from ..factories import ELSEWHERE, LOCK, NOW, QUEUE, SECOND, complete, fail, new_flow, new_job, retry

URL = 'https://example.com/hook?a=1&b="2"'
RULE = WebhookRule(URL, FINAL)
HOOK = Extras(webhook=RULE)


async def deliveries(store: Store) -> list[tuple[str, Origin | None]]:
    found = await claim(store, 10, queue=DELIVERIES, now=NOW + LOCK)
    return [(job.id, job.extras.origin if job.extras else None) for job in found]


class TestWebhooks:
    async def test_a_completed_job_leaves_a_delivery_with_its_result(self, store: Store) -> None:
        held = await active(store, id="job", data='{"n":1}', attempts=3, extras=HOOK)

        await store.settle(QUEUE, [complete(held, result='{"sum":"1\\n\\"2\\""}')], now=NOW + 5)

        delivery = await read(store, delivery_id(QUEUE, "job", NOW + 5, "completed"), DELIVERIES)
        assert (delivery.state, delivery.name, delivery.data) == ("waiting", held.name, '{"n":1}')
        assert (delivery.options, delivery.created_at, delivery.attempts_made) == (DELIVERY_OPTIONS, NOW + 5, 0)
        origin = Origin(QUEUE, "job", "", 0, NOW + 5, "completed", '{"sum":"1\\n\\"2\\""}')
        assert delivery.extras == Extras(origin=origin, webhook=WebhookRule(URL))
        assert (await read(store, "job")).state == "completed"

    async def test_a_job_without_a_result_leaves_a_delivery_without_one(self, store: Store) -> None:
        held = await active(store, id="job", extras=HOOK)

        await store.settle(QUEUE, [complete(held, result=None)], now=NOW)

        [(_, origin)] = await deliveries(store)
        assert origin == Origin(QUEUE, "job", "", 0, NOW, "completed")

    async def test_a_failed_job_leaves_one_with_its_reason(self, store: Store) -> None:
        held = await active(store, id="job", extras=HOOK)

        await store.settle(QUEUE, [fail(held, reason='no "luck"\n')], now=NOW)

        origin = Origin(QUEUE, "job", 'no "luck"\n', 1, NOW, "failed")
        assert await deliveries(store) == [(delivery_id(QUEUE, "job", NOW, "failed"), origin)]

    async def test_a_reason_of_an_earlier_attempt_is_not_that_of_the_completion(self, store: Store) -> None:
        held = await active(store, id="job", attempts=2, extras=HOOK)
        await store.settle(QUEUE, [retry(held)], now=NOW)

        await store.settle(QUEUE, [complete(await claim_one(store))], now=NOW)

        [(_, origin)] = await deliveries(store)
        assert origin is not None
        assert (origin.reason, origin.attempts, origin.event) == ("", 1, "completed")

    async def test_a_cancelled_job_leaves_one(self, store: Store) -> None:
        await add_one(store, id="waits", extras=HOOK)
        await store.cancel(QUEUE, ["waits"], "no need", now=NOW)
        await active(store, id="runs", extras=HOOK)
        await store.cancel(QUEUE, ["runs"], now=NOW)

        assert await deliveries(store) == [
            (delivery_id(QUEUE, "waits", NOW, "cancelled"), Origin(QUEUE, "waits", "no need", 0, NOW, "cancelled")),
            (delivery_id(QUEUE, "runs", NOW, "cancelled"), Origin(QUEUE, "runs", "", 0, NOW, "cancelled")),
        ]

    async def test_a_job_that_is_given_up_leaves_one(self, store: Store) -> None:
        await active(store, id="job", extras=HOOK)

        await store.tick(QUEUE, StallRules(on_stalled="fail"), now=NOW + LOCK)

        reason = (await read(store, "job")).reason or ""
        origin = Origin(QUEUE, "job", reason, 0, NOW + LOCK, "failed")
        assert await deliveries(store) == [(delivery_id(QUEUE, "job", NOW + LOCK, "failed"), origin)]

    async def test_a_job_that_expires_leaves_one(self, store: Store) -> None:
        await add_one(store, id="job", extras=Extras(start_within=SECOND, webhook=RULE))

        await store.tick(QUEUE, StallRules(), now=NOW + SECOND)

        origin = Origin(QUEUE, "job", EXPIRED_REASON, 0, NOW + SECOND, "failed")
        assert await deliveries(store) == [(delivery_id(QUEUE, "job", NOW + SECOND, "failed"), origin)]

    async def test_a_parent_that_fails_by_a_child_leaves_one(self, store: Store) -> None:
        root, child = new_flow(new_job("root", extras=HOOK), new_job("child", queue=ELSEWHERE))
        await store.add([[root, child]], now=NOW)
        held = await claim_one(store, queue=ELSEWHERE)

        await store.settle(ELSEWHERE, [fail(held)], now=NOW)

        reason = f"child {ELSEWHERE}/child failed: no luck"
        origin = Origin(QUEUE, "root", reason, 0, NOW, "failed")
        assert await deliveries(store) == [(delivery_id(QUEUE, "root", NOW, "failed"), origin)]

    async def test_only_the_ends_that_it_asks_for_are_reported(self, store: Store) -> None:
        failures = Extras(webhook=WebhookRule(URL, ("failed",)))
        for id in ("completes", "fails"):
            await add_one(store, id=id, extras=failures)
        await add_one(store, id="quiet", extras=Extras(webhook=WebhookRule(URL, ())))
        held = {job.id: job for job in await claim(store, 3)}

        outcomes = [complete(held["completes"]), fail(held["fails"]), fail(held["quiet"])]
        await store.settle(QUEUE, outcomes, now=NOW)

        assert [id for id, _ in await deliveries(store)] == [delivery_id(QUEUE, "fails", NOW, "failed")]

    async def test_an_attempt_that_is_retried_is_not_reported(self, store: Store) -> None:
        held = await active(store, attempts=2, extras=HOOK)

        await store.settle(QUEUE, [retry(held)], now=NOW)

        assert await deliveries(store) == []

    async def test_it_is_added_like_any_job(self, store: Store) -> None:
        held = await active(store, id="job", extras=HOOK)

        await store.settle(QUEUE, [complete(held)], now=NOW)

        added = (delivery_id(QUEUE, "job", NOW, "completed"), {"name": held.name})
        assert await events_of(store, "add", DELIVERIES) == [added]
        assert (await store.count(DELIVERIES))["waiting"] == 1
        assert DELIVERIES in await store.queues()

    async def test_a_job_may_leave_a_dead_letter_too(self, store: Store) -> None:
        held = await active(store, id="job", extras=Extras(dead_letter="dead", webhook=RULE))

        await store.settle(QUEUE, [fail(held)], now=NOW)

        letter = await read(store, dead_letter_id(QUEUE, "job", NOW), "dead")
        assert letter.extras == Extras(origin=Origin(QUEUE, "job", "no luck", 1, NOW))
        assert [id for id, _ in await deliveries(store)] == [delivery_id(QUEUE, "job", NOW, "failed")]

    async def test_each_end_leaves_another(self, store: Store) -> None:
        held = await active(store, id="job", extras=HOOK)
        await store.settle(QUEUE, [fail(held)], now=NOW)
        await store.retry(QUEUE, ["job"], now=NOW)
        await store.settle(QUEUE, [complete(await claim_one(store))], now=NOW)
        await store.retry(QUEUE, ["job"], now=NOW + 1)
        await store.settle(QUEUE, [complete(await claim_one(store, now=NOW + 1))], now=NOW + 2)

        ends = [(NOW, "failed"), (NOW, "completed"), (NOW + 2, "completed")]
        assert [id for id, _ in await deliveries(store)] == [delivery_id(QUEUE, "job", *end) for end in ends]

    async def test_a_stale_token_leaves_none(self, store: Store) -> None:
        held = await active(store, extras=HOOK)

        await store.settle(QUEUE, [complete(held, token="another")], now=NOW)

        assert await deliveries(store) == []

    async def test_a_repeated_settle_leaves_no_second(self, store: Store) -> None:
        held = await active(store, extras=HOOK)

        for at in (NOW, NOW + 1):
            await store.settle(QUEUE, [complete(held)], now=at)

        assert len(await deliveries(store)) == 1

    async def test_it_outlives_a_job_that_is_removed_at_once(self, store: Store) -> None:
        held = await active(store, id="job", extras=HOOK)

        await store.settle(QUEUE, [complete(held, keep=NOT_AT_ALL, result="5")], now=NOW)

        assert await is_gone(store, "job")
        [(_, origin)] = await deliveries(store)
        assert origin == Origin(QUEUE, "job", "", 0, NOW, "completed", "5")

    async def test_many_end_in_one_call(self, store: Store) -> None:
        for number in range(6):
            await add_one(store, id=f"job-{number}", extras=HOOK if number % 2 else None)
        held = await claim(store, 6)

        outcomes = [complete(job, result=job.id[-1]) if number < 3 else fail(job) for number, job in enumerate(held)]
        await store.settle(QUEUE, outcomes, now=NOW)

        found = {(origin.id, origin.event, origin.result) for _, origin in await deliveries(store) if origin}
        assert found == {("job-1", "completed", "1"), ("job-3", "failed", None), ("job-5", "failed", None)}

    async def test_a_removed_job_leaves_none(self, store: Store) -> None:
        await add_one(store, id="job", extras=HOOK)

        await store.remove(QUEUE, ["job"], now=NOW)

        assert await deliveries(store) == []
