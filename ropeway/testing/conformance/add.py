from __future__ import annotations

import asyncio

from ...job.codec import decode
from ...job.record import JobRecord
from ...job.states import State
from ...store.contract import Store
from ...store.values import Added
from ..arrange import ARRANGED, add, add_one, claim, claim_one, entries, events_of, is_gone, job_in, read, snapshot
from ..factories import NOW, QUEUE, SECOND, new_job, new_jobs
from .cases import for_each


def verdicts(answers: list[list[Added]]) -> list[list[str]]:
    return [[answer.verdict for answer in bundle] for bundle in answers]


class TestAdd:
    async def test_a_new_job_waits(self, store: Store) -> None:
        job = new_job("a", name="send", data='{"to":1}', priority=7, attempts=3)

        [[answer]] = await store.add([[job]], now=NOW)

        stored = await read(store, "a")
        assert (answer.id, answer.verdict) == ("a", "created")
        assert stored == JobRecord(
            QUEUE, "a", "send", '{"to":1}', job.options, "waiting", 7, stored.order, created_at=NOW
        )

    async def test_it_keeps_its_options(self, store: Store) -> None:
        job = await add_one(store, attempts=3, timeout=5, stack_traces=2)

        options = job.read_options()
        assert (options.attempts, options.timeout, options.stack_traces) == (3, 5 * SECOND, 2)

    async def test_a_delay_begins_now(self, store: Store) -> None:
        job = await add_one(store, delay=5 * SECOND)

        assert (job.state, job.due_at) == ("delayed", NOW + 5 * SECOND)

    async def test_a_delay_can_be_an_instant(self, store: Store) -> None:
        job = await add_one(store, due_at=NOW + 1)

        assert (job.state, job.due_at) == ("delayed", NOW + 1)

    @for_each("due_at", [NOW, NOW - 1, 0])
    async def test_an_instant_that_has_passed_means_now(self, store: Store, due_at: int) -> None:
        job = await add_one(store, due_at=due_at)

        assert (job.state, job.due_at) == ("waiting", None)

    async def test_later_jobs_have_higher_places(self, store: Store) -> None:
        first, second = await add(store, *new_jobs(2))
        third = await add_one(store)

        assert 0 < first.order < second.order < third.order

    async def test_the_place_of_a_lifo_job_is_ahead_of_all(self, store: Store) -> None:
        first, second = await add(store, *new_jobs(2, lifo=True))

        assert second.order < first.order < 0

    async def test_answers_come_in_order_bundle_by_bundle(self, store: Store) -> None:
        await add(store, new_job("old"))

        answers = await store.add(
            [[new_job("x")], [new_job("y"), new_job("old", data="2")], [new_job("old"), new_job("z")]],
            now=NOW,
        )

        assert [[answer.id for answer in bundle] for bundle in answers] == [["x"], ["y", "old"], ["old", "z"]]
        assert verdicts(answers) == [["created"], ["skipped", "conflict"], ["found", "created"]]

    async def test_a_repeated_add_finds_its_jobs(self, store: Store) -> None:
        bundle = new_jobs(3)
        await store.add([bundle], now=NOW)
        before = await snapshot(store)

        answers = await store.add([bundle], now=NOW + 1)

        assert verdicts(answers) == [["found"] * 3]
        assert await snapshot(store) == before

    @for_each("state", ARRANGED)
    async def test_an_id_is_found_in_any_state_and_the_job_does_not_change(self, store: Store, state: State) -> None:
        job = await job_in(state, store, id="a")

        answers = await store.add([[new_job("a")]], now=NOW + 1)

        assert verdicts(answers) == [["found"]]
        assert await read(store, "a") == job

    @for_each("state", ARRANGED)
    async def test_an_id_with_other_data_is_a_conflict_in_any_state(self, store: Store, state: State) -> None:
        job = await job_in(state, store, id="a")

        answers = await store.add([[new_job("a", data='{"to":"me"}')]], now=NOW + 1)

        assert verdicts(answers) == [["conflict"]]
        assert await read(store, "a") == job

    async def test_an_id_with_another_name_is_a_conflict(self, store: Store) -> None:
        await add(store, new_job("a", name="send"))

        answers = await store.add([[new_job("a", name="print")]], now=NOW)

        assert verdicts(answers) == [["conflict"]]

    async def test_other_options_are_no_conflict(self, store: Store) -> None:
        job = await add_one(store, id="a", priority=1, attempts=2)

        answers = await store.add([[new_job("a", priority=2, attempts=5, delay=SECOND)]], now=NOW)

        assert verdicts(answers) == [["found"]]
        assert await read(store, "a") == job

    async def test_a_job_is_announced_as_added_before_it_is_as_duplicated(self, store: Store) -> None:
        await add(store, new_job("old"))

        await store.add([[new_job("old")], [new_job("a")], [new_job("a")]], now=NOW)

        told = [entry.what for entry in await entries(store) if "a" in dict(entry.jobs)]
        assert told == ["add", "duplicated"]

    async def test_a_job_that_is_found_beside_a_conflict_is_announced_too(self, store: Store) -> None:
        await add(store, new_job("a"), new_job("b"))

        await store.add([[new_job("a"), new_job("b", data='"other"'), new_job("c"), new_job("c")]], now=NOW)

        assert await events_of(store, "duplicated") == [("a", {})]

    async def test_a_found_job_is_announced_as_duplicated(self, store: Store) -> None:
        await add(store, new_job("a"))

        await store.add([[new_job("a")]], now=NOW)

        assert await events_of(store, "duplicated") == [("a", {})]

    async def test_the_id_of_a_removed_job_is_free(self, store: Store) -> None:
        await add(store, new_job("a"))
        await store.remove(QUEUE, ["a"], now=NOW)

        answers = await store.add([[new_job("a", data="2")]], now=NOW)

        assert verdicts(answers) == [["created"]]

    async def test_a_conflict_stores_nothing_of_its_bundle(self, store: Store) -> None:
        await add(store, new_job("old"), new_job("taken"))

        answers = await store.add([[new_job("x"), new_job("taken", data="2"), new_job("old"), new_job("y")]], now=NOW)

        assert verdicts(answers) == [["skipped", "conflict", "found", "skipped"]]
        assert await is_gone(store, "x")
        assert await is_gone(store, "y")
        assert (await store.count(QUEUE))["waiting"] == 2

    async def test_bundles_do_not_depend_on_each_other(self, store: Store) -> None:
        await add(store, new_job("taken"))

        await store.add([[new_job("x")], [new_job("y"), new_job("taken", data="2")], [new_job("z")]], now=NOW)

        assert [job.id for job in await claim(store, 10)] == ["taken", "x", "z"]

    async def test_the_same_job_twice_in_a_bundle_is_one_job(self, store: Store) -> None:
        answers = await store.add([[new_job("a"), new_job("b"), new_job("a")]], now=NOW)

        assert verdicts(answers) == [["created", "created", "found"]]
        assert (await store.count(QUEUE))["waiting"] == 2

    async def test_an_id_for_two_jobs_of_a_bundle_is_a_conflict(self, store: Store) -> None:
        answers = await store.add([[new_job("a"), new_job("b"), new_job("a", data="2")]], now=NOW)

        assert verdicts(answers) == [["skipped", "skipped", "conflict"]]
        assert (await store.count(QUEUE))["waiting"] == 0

    async def test_a_later_bundle_finds_the_job_of_an_earlier_one(self, store: Store) -> None:
        answers = await store.add([[new_job("a")], [new_job("a")], [new_job("a", data="2")]], now=NOW)

        assert verdicts(answers) == [["created"], ["found"], ["conflict"]]

    async def test_two_queues_may_use_the_same_id(self, store: Store) -> None:
        answers = await store.add([[new_job("a", data="1"), new_job("a", queue="parcels", data="2")]], now=NOW)

        assert verdicts(answers) == [["created", "created"]]
        assert (await read(store, "a")).data == "1"
        assert (await read(store, "a", "parcels")).data == "2"

    async def test_nothing_to_add_is_nothing_added(self, store: Store) -> None:
        assert await store.add([], now=NOW) == []
        assert await store.add([[]], now=NOW) == [[]]
        assert await store.add([[], [new_job("a")]], now=NOW) != [[], []]

    async def test_a_large_bundle_keeps_its_order(self, store: Store) -> None:
        jobs = new_jobs(2_500)

        await store.add([jobs], now=NOW)

        claimed = await claim(store, 2_500)
        assert [job.id for job in claimed] == [job.id for job in jobs]

    async def test_many_adds_of_one_id_at_once_make_one_job(self, store: Store, sibling: Store) -> None:
        answers = await asyncio.gather(
            *(handle.add([[new_job("a", data=f"{n % 2}")]]) for n in range(25) for handle in (store, sibling))
        )

        given = [answer.verdict for [[answer]] in answers]
        assert given.count("created") == 1
        # Half of them brought other data than the one that came first.
        assert (given.count("found"), given.count("conflict")) in ((24, 25), (25, 24), (23, 26))
        assert [job.id for job in await claim(store, 50)] == ["a"]

    async def test_jobs_of_many_adds_at_once_all_arrive(self, store: Store, sibling: Store) -> None:
        await asyncio.gather(*(handle.add([new_jobs(3)]) for _ in range(20) for handle in (store, sibling)))

        assert (await store.count(QUEUE))["waiting"] == 120

    async def test_it_is_announced_with_its_name_and_when_it_is_due(self, store: Store) -> None:
        await store.add([[new_job("a", name="send"), new_job("b", name="print", delay=SECOND)]], now=NOW)

        assert await events_of(store, "add") == [
            ("a", {"name": "send"}),
            ("b", {"name": "print", "due_at": NOW + SECOND}),
        ]

    async def test_without_an_instant_the_store_s_clock_decides(self, store: Store) -> None:
        before = await store.clock()
        await store.add([[new_job("a", delay=SECOND)]])
        after = await store.clock()

        job = await read(store, "a")
        assert before <= job.created_at <= after
        assert job.due_at == job.created_at + SECOND

    async def test_data_is_readable_by_whoever_claims(self, store: Store) -> None:
        await add(store, new_job(data='{"to":["a","b"]}'))

        assert decode((await claim_one(store)).data) == {"to": ["a", "b"]}
