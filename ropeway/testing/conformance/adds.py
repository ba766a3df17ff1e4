"""Jobs that an outcome adds, in the step that accepts it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...store.contract import Store
from ...store.values import StallRules
from ..arrange import active, add, add_one, claim, events_of, is_gone, read, snapshot
from ..factories import DAY, FOREIGN, NOW, QUEUE, claim_request, complete, fail, hand_back, new_job, postpone, retry
from .cases import for_each

ELSEWHERE = "parcels"
SETTLINGS: list[Callable[[JobRecord], Outcome]] = [complete, fail, retry, postpone, hand_back]


async def settle(store: Store, outcome: Outcome, *adds: NewJob, now: int = NOW) -> str:
    settled = await store.settle(QUEUE, [replace(outcome, adds=adds)], now=now)
    return settled.answers[0].verdict


async def arrived(store: Store, queue: str, id: str) -> JobRecord:
    """Where queues are on different servers, a tick may have to deliver it."""
    await store.tick(QUEUE, StallRules(), now=NOW)
    return await read(store, id, queue)


class TestSettleAdds:
    @for_each("outcome", SETTLINGS, ids=[settling.__name__ for settling in SETTLINGS])
    async def test_an_accepted_outcome_adds_its_jobs(
        self, store: Store, outcome: Callable[[JobRecord], Outcome]
    ) -> None:
        held = await active(store)

        assert await settle(store, outcome(held), new_job("next", data='{"n":1}', priority=3)) == "done"

        job = await read(store, "next")
        assert (job.state, job.data, job.priority, job.created_at) == ("waiting", '{"n":1}', 3, NOW)
        assert ("next", {"name": "send"}) in await events_of(store, "add")
        assert sum((await store.count(QUEUE)).values()) == 2

    async def test_they_may_be_delayed_and_have_options_and_tags(self, store: Store) -> None:
        held = await active(store)

        await settle(store, complete(held), new_job("next", delay=DAY, attempts=3, tags=("later",)))

        job = await read(store, "next")
        assert (job.state, job.due_at, job.read_options().attempts, job.tags) == ("delayed", NOW + DAY, 3, ("later",))

    async def test_they_may_be_of_other_queues(self, store: Store) -> None:
        held = await active(store)

        await settle(store, complete(held), new_job("here"), new_job("there", queue=ELSEWHERE))

        assert (await read(store, "here")).state == "waiting"
        assert (await arrived(store, ELSEWHERE, "there")).state == "waiting"
        assert ELSEWHERE in await store.queues()

    async def test_the_same_trip_can_claim_them(self, store: Store) -> None:
        held = await active(store)
        outcome = replace(complete(held), adds=(new_job("next"),))

        settled = await store.settle(QUEUE, [outcome], claim_request(5), now=NOW)

        assert settled.claimed is not None
        assert [job.id for job in settled.claimed.jobs] == ["next"]

    async def test_a_refused_outcome_adds_nothing(self, store: Store) -> None:
        held = await active(store)

        assert await settle(store, complete(held, token=FOREIGN), new_job("next")) == "lost"

        assert await is_gone(store, "next")

    async def test_an_outcome_of_a_missing_job_adds_nothing(self, store: Store) -> None:
        held = await active(store)
        await store.remove(QUEUE, [held.id], force=True, now=NOW)

        assert await settle(store, complete(held), new_job("next")) == "missing"

        assert await is_gone(store, "next")

    async def test_a_repeated_outcome_adds_nothing_more(self, store: Store) -> None:
        held = await active(store)
        await settle(store, complete(held), new_job("next"), new_job("there", queue=ELSEWHERE))
        await arrived(store, ELSEWHERE, "there")
        await store.remove(QUEUE, ["next"], now=NOW)
        await store.remove(ELSEWHERE, ["there"], now=NOW)

        assert await settle(store, complete(held), new_job("next"), new_job("there", queue=ELSEWHERE)) == "done"

        await store.tick(QUEUE, StallRules(), now=NOW)
        assert await is_gone(store, "next")
        assert await is_gone(store, "there", ELSEWHERE)

    async def test_an_id_that_exists_is_left_as_it_is(self, store: Store) -> None:
        held = await active(store)
        there = await add_one(store, id="next", data='"old"')

        assert await settle(store, complete(held), new_job("next", data='"new"'), new_job("other")) == "done"

        assert await read(store, "next") == there
        assert (await read(store, "other")).state == "waiting"

    async def test_of_two_outcomes_each_adds_its_own(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))
        first, second = await claim(store, 2)
        outcomes = [
            replace(complete(first), adds=(new_job("after-a"),)),
            replace(complete(second, token=FOREIGN), adds=(new_job("after-b"),)),
        ]

        await store.settle(QUEUE, outcomes, now=NOW)

        assert (await read(store, "after-a")).state == "waiting"
        assert await is_gone(store, "after-b")

    async def test_they_are_in_line_in_their_order(self, store: Store) -> None:
        held = await active(store)
        await add(store, new_job("before"))

        await settle(store, complete(held), new_job("x"), new_job("y", priority=-1), new_job("z"))

        assert [job.id for job in await claim(store, 4)] == ["y", "before", "x", "z"]

    async def test_an_outcome_without_them_adds_nothing(self, store: Store) -> None:
        held = await active(store)
        await settle(store, complete(held))

        jobs, _ = await snapshot(store)
        assert [job.id for job in jobs] == [held.id]
