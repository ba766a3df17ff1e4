"""Marks: named values that a job leaves in the store, and waiting for one of them."""

from __future__ import annotations

from msgspec.structs import replace

from ...job.instants import LAST_INSTANT
from ...job.marks import Mark, Marking, Notice
from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...job.retention import KEEP_COMPLETED, NOT_AT_ALL, Retention
from ...job.states import FINAL, OPEN, State
from ...store.commands import Find
from ...store.contract import Store
from ...store.values import Answer, JobUpdate, StallRules
from ..arrange import active, add_one, claim, claim_one, completed, entries, events_of, job_in, read
from ..factories import (
    DAY,
    FOREIGN,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    fail,
    hand_back,
    postpone,
    retry,
    token_of,
)
from .cases import for_each


def mark(name: str, value: str = "1") -> Marking:
    return Marking(marks=(Mark(name, value),))


async def write(store: Store, job: JobRecord, marking: Marking, *, now: int = NOW, token: str | None = None) -> Answer:
    [answer] = await store.update(QUEUE, [JobUpdate(job.id, token or job.token, marking=marking)], now=now)
    return answer


async def signal(store: Store, id: str, name: str, value: str = "1", *, now: int = NOW) -> Answer:
    [answer] = await store.update(QUEUE, [JobUpdate(id, marking=mark(name, value))], now=now)
    return answer


def await_mark(job: JobRecord, name: str, delay: int = LAST_INSTANT) -> Outcome:
    return Outcome(job.id, token_of(job), "postpone", delay=delay, awaits=name)


class TestMarks:
    async def test_a_mark_is_read_back_with_the_time_of_its_writing(self, store: Store) -> None:
        held = await active(store)

        answer = await write(store, held, mark("step:fetch", '{"rows":[1,"é"]}'), now=NOW + 5)

        assert answer == Answer("done", "active")
        assert (await read(store, held.id)).marks == (Mark("step:fetch", '{"rows":[1,"é"]}', NOW + 5),)

    async def test_marks_are_ordered_by_name_and_the_newest_of_a_name_stays(self, store: Store) -> None:
        held = await active(store)
        await write(store, held, Marking(marks=(Mark("b", "1"), Mark("a", "2"))))

        await write(store, held, Marking(marks=(Mark("b", "3"), Mark("B", "4"))), now=NOW + 1)

        expected = (Mark("B", "4", NOW + 1), Mark("a", "2", NOW), Mark("b", "3", NOW + 1))
        assert (await read(store, held.id)).marks == expected

    async def test_forgotten_marks_are_gone(self, store: Store) -> None:
        held = await active(store)
        await write(store, held, Marking(marks=(Mark("a", "1"), Mark("b", "1"))))

        await write(store, held, Marking(marks=(Mark("b", "2"),), forgets=("a", "b", "missing")))

        assert (await read(store, held.id)).marks == (Mark("b", "2", NOW),)

    async def test_the_next_claim_has_them(self, store: Store) -> None:
        held = await active(store, attempts=2)
        await write(store, held, mark("a"))
        await store.settle(QUEUE, [retry(held)], now=NOW)

        assert (await claim_one(store)).marks == (Mark("a", "1", NOW),)

    async def test_a_claim_behind_a_settle_has_them(self, store: Store) -> None:
        held = await active(store, attempts=2)
        await write(store, held, mark("a"))

        settled = await store.settle(QUEUE, [retry(held)], claim_request(), now=NOW)

        assert settled.claimed is not None
        assert [job.marks for job in settled.claimed.jobs] == [(Mark("a", "1", NOW),)]

    async def test_a_stalled_job_keeps_them(self, store: Store) -> None:
        held = await active(store)
        await write(store, held, mark("a"))

        await store.tick(QUEUE, StallRules(), now=NOW + LOCK)

        assert [job.marks for job in await claim(store, now=NOW + LOCK)] == [(Mark("a", "1", NOW),)]

    async def test_a_stale_token_writes_none(self, store: Store) -> None:
        held = await active(store)

        answer = await write(store, held, Marking((Mark("a", "1"),), notices=(Notice("phase-started"),)), token=FOREIGN)

        assert answer.verdict == "lost"
        assert (await read(store, held.id)).marks == ()
        assert await events_of(store, "phase-started") == []

    async def test_notices_are_announced(self, store: Store) -> None:
        held = await active(store)

        notices = (Notice("phase-completed", '{"phase":"a"}'), Notice("phase-started", '{"phase":"b"}'))
        await write(store, held, Marking(notices=notices))

        assert await events_of(store, "phase-completed") == [(held.id, {"phase": "a"})]
        assert await events_of(store, "phase-started") == [(held.id, {"phase": "b"})]

    async def test_notices_of_each_job_keep_their_order(self, store: Store) -> None:
        """However many jobs and updates share the call, and whatever else is announced."""
        jobs = [await active(store, id=id) for id in "abc"]

        def announcing(job: JobRecord, *notices: str) -> JobUpdate:
            given = tuple(Notice(f"phase-{what}", f'{{"n":{n}}}') for n, what in enumerate(notices))
            return JobUpdate(job.id, job.token, marking=Marking(notices=given))

        first, second, third = jobs
        updates = [
            announcing(first, "completed", "started"),
            announcing(second, "started", "completed", "started"),
            announcing(third, "started", "started"),
            announcing(first, "completed"),
        ]
        await store.update(QUEUE, updates, now=NOW)

        events = [
            (id, entry.what, entry.data_of(detail)["n"])
            for entry in await entries(store)
            if entry.what.startswith("phase-")
            for id, detail in entry.jobs
        ]
        assert {job.id: [(what, n) for id, what, n in events if id == job.id] for job in jobs} == {
            "a": [("phase-completed", 0), ("phase-started", 1), ("phase-completed", 0)],
            "b": [("phase-started", 0), ("phase-completed", 1), ("phase-started", 2)],
            "c": [("phase-started", 0), ("phase-started", 1)],
        }

    async def test_marks_progress_and_log_share_one_update(self, store: Store) -> None:
        held = await active(store)
        change = JobUpdate(held.id, held.token, progress="17", log=("line",), marking=mark("a"))

        await store.update(QUEUE, [change], now=NOW)

        job = await read(store, held.id)
        assert (job.progress, len(job.marks)) == ("17", 1)

    @for_each("move", ["complete", "fail", "retry", "postpone", "hand back"])
    async def test_an_outcome_writes_marks_in_its_own_step(self, store: Store, move: str) -> None:
        held = await active(store, attempts=2)
        moves = (complete(held), fail(held), retry(held), postpone(held), hand_back(held))
        [outcome] = [outcome for outcome in moves if outcome.move == move]
        marking = Marking((Mark("a", "1"),), notices=(Notice("phase-completed"),))
        await store.settle(QUEUE, [_with(outcome, marking)], now=NOW)

        assert (await read(store, held.id)).marks == (Mark("a", "1", NOW),)
        assert await events_of(store, "phase-completed") == [(held.id, {})]

    @for_each("keep", [KEEP_COMPLETED, NOT_AT_ALL])
    async def test_an_outcome_may_only_announce(self, store: Store, keep: Retention) -> None:
        """The notices of those that are accepted, before their ends, and once."""
        for number in range(4):
            await add_one(store, id=f"job-{number}")
        held = await claim(store, 4)
        await write(store, held[0], mark("a"))
        announcing = Marking(notices=(Notice("phase-completed", '{"phase":"last"}'),))
        outcomes = [
            _with(complete(held[0], keep=keep), announcing),
            _with(complete(held[1], token=FOREIGN, keep=keep), announcing),
            complete(held[2], keep=keep),
            _with(complete(held[3], keep=keep), announcing),
        ]

        for _ in range(2):
            await store.settle(QUEUE, outcomes, now=NOW)

        events = [
            (id, entry.what)
            for entry in await entries(store)
            if entry.what in ("phase-completed", "complete")
            for id, _ in entry.jobs
        ]
        assert {job.id: [what for id, what in events if id == job.id] for job in held} == {
            "job-0": ["phase-completed", "complete"],
            "job-1": [],
            "job-2": ["complete"],
            "job-3": ["phase-completed", "complete"],
        }
        if keep is KEEP_COMPLETED:
            assert (await read(store, "job-0")).marks == (Mark("a", "1", NOW),)

    async def test_an_outcome_may_only_announce_beside_others(self, store: Store) -> None:
        for number in range(3):
            await add_one(store, id=f"job-{number}")
        first, second, third = await claim(store, 3)
        announcing = Marking(notices=(Notice("phase-completed", '{"phase":"last"}'),))

        outcomes = [
            _with(complete(first), announcing),
            _with(fail(second), announcing),
            _with(hand_back(third), mark("a")),
        ]
        await store.settle(QUEUE, outcomes, now=NOW)

        assert sorted(await events_of(store, "phase-completed")) == [
            (first.id, {"phase": "last"}),
            (second.id, {"phase": "last"}),
        ]
        assert [job.marks for job in await store.get(QUEUE, ["job-0", "job-1", "job-2"]) if job] == [
            (),
            (),
            (Mark("a", "1", NOW),),
        ]

    async def test_a_refused_outcome_writes_none(self, store: Store) -> None:
        held = await active(store)

        await store.settle(QUEUE, [_with(complete(held, token=FOREIGN), mark("a"))], now=NOW)

        assert (await read(store, held.id)).marks == ()

    async def test_a_list_of_jobs_leaves_them_out(self, store: Store) -> None:
        held = await active(store)
        await write(store, held, mark("a"))

        [job] = (await store.find(Find(QUEUE, ("active",)))).jobs

        assert job.marks == ()

    @for_each("state", FINAL)
    async def test_a_final_job_gets_none(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert (await signal(store, job.id, "a")).verdict == "refused"

    @for_each("state", OPEN)
    async def test_any_other_gets_marks_without_a_token(self, store: Store, state: State) -> None:
        job = await job_in(state, store)

        assert (await signal(store, job.id, "a")).verdict == "done"

        after = await read(store, job.id)
        assert (after.state, after.marks) == (state, (Mark("a", "1", NOW),))

    async def test_a_job_that_never_ran_is_claimed_with_its_marks(self, store: Store) -> None:
        await add_one(store, id="job")
        await signal(store, "job", "a")

        assert (await claim_one(store)).marks == (Mark("a", "1", NOW),)

    async def test_a_removed_job_leaves_none_behind(self, store: Store) -> None:
        held = await active(store, id="job")
        await write(store, held, mark("a"))
        await store.remove(QUEUE, ["job"], force=True, now=NOW)

        await add_one(store, id="job")

        assert (await read(store, "job")).marks == ()

    async def test_a_retry_by_hand_keeps_them_but_those_it_forgets(self, store: Store) -> None:
        job = await completed(store)
        await store.retry(QUEUE, [job.id], now=NOW)
        held = await claim_one(store)
        await write(store, held, Marking(marks=(Mark("a", "1"), Mark("b", "1"))))
        await store.settle(QUEUE, [fail(held)], now=NOW)

        await store.retry(QUEUE, [job.id], marking=Marking(forgets=("b",)), now=NOW)

        assert (await claim_one(store)).marks == (Mark("a", "1", NOW),)

    async def test_jobs_that_are_updated_together_share_what_they_share(self, store: Store) -> None:
        """Marks, progress and notices that all have, or each for itself; a stale token among them changes nothing."""
        for number in range(5):
            await add_one(store, id=f"job-{number}")
        held = await claim(store, 5)
        await write(store, held[0], Marking((Mark("a", "0"), Mark("b", "0"))))
        started, done = Notice("phase-started", '{"n":1}'), Notice("phase-completed", '{"n":1}')
        shared = Marking((Mark("a", "1"),), notices=(done, started))
        own = Marking((Mark("a", '"own"'), Mark("c", "2")), ("b",), (done, started))

        answers = await store.update(
            QUEUE,
            [
                JobUpdate(held[0].id, held[0].token, progress="33", marking=own),
                JobUpdate(held[1].id, held[1].token, progress="33", marking=shared),
                JobUpdate(held[2].id, FOREIGN, progress="33", marking=shared),
                JobUpdate(held[3].id, held[3].token, progress="67", marking=shared),
                JobUpdate(held[4].id, held[4].token, progress="67"),
            ],
            now=NOW + 1,
        )

        assert [answer.verdict for answer in answers] == ["done", "done", "lost", "done", "done"]
        jobs = [await read(store, job.id) for job in held]
        assert [job.progress for job in jobs] == ["33", "33", None, "67", "67"]
        one = Mark("a", "1", NOW + 1)
        assert [job.marks for job in jobs] == [
            (Mark("a", '"own"', NOW + 1), Mark("c", "2", NOW + 1)),
            (one,),
            (),
            (one,),
            (),
        ]
        told = ["job-0", "job-1", "job-3"]
        assert sorted(await events_of(store, "phase-started")) == [(id, {"n": 1}) for id in told]
        assert sorted(await events_of(store, "phase-completed")) == [(id, {"n": 1}) for id in told]
        assert sorted(await events_of(store, "progress")) == [
            *(("job-0", {"progress": 33}), ("job-1", {"progress": 33})),
            *(("job-3", {"progress": 67}), ("job-4", {"progress": 67})),
        ]
        await store.settle(QUEUE, [hand_back(job) for job in held], now=NOW + 1)
        assert [job.marks for job in await claim(store, 5)] == [job.marks for job in jobs]

    async def test_many_marks_of_many_jobs(self, store: Store) -> None:
        for number in range(3):
            await add_one(store, id=f"job-{number}")
        held = await claim(store, 3)
        updates = [
            JobUpdate(job.id, job.token, marking=Marking(tuple(Mark(f"m-{n:03}", f"{n}") for n in range(100))))
            for job in held[:2]
        ]

        await store.update(QUEUE, updates, now=NOW)

        assert [len(job.marks) for job in await store.get(QUEUE, [job.id for job in held]) if job] == [100, 100, 0]


class TestAwaitedMarks:
    async def test_a_job_waits_until_the_mark_comes(self, store: Store) -> None:
        held = await active(store, id="job")
        await store.settle(QUEUE, [await_mark(held, "signal:paid")], now=NOW)
        assert (await read(store, "job")).state == "delayed"

        await signal(store, "job", "signal:paid", "42", now=NOW + DAY)

        [job] = await claim(store, now=NOW + DAY)
        assert (job.id, job.marks, job.attempts_made) == ("job", (Mark("signal:paid", "42", NOW + DAY),), 0)
        assert await events_of(store, "promote") == [("job", {})]

    async def test_a_mark_that_came_first_lets_it_go_on_at_once(self, store: Store) -> None:
        held = await active(store, id="job")
        await signal(store, "job", "signal:paid")

        await store.settle(QUEUE, [await_mark(held, "signal:paid")], now=NOW)

        assert [job.id for job in await claim(store)] == ["job"]

    async def test_its_delay_is_the_longest_wait(self, store: Store) -> None:
        held = await active(store, id="job")
        await store.settle(QUEUE, [await_mark(held, "signal:paid", SECOND)], now=NOW)

        assert await claim(store, now=NOW + SECOND - 1) == []
        assert [job.id for job in await claim(store, now=NOW + SECOND)] == ["job"]

    async def test_other_marks_do_not_end_it(self, store: Store) -> None:
        held = await active(store, id="job")
        await store.settle(QUEUE, [await_mark(held, "signal:paid")], now=NOW)

        await signal(store, "job", "signal:other")

        assert (await read(store, "job")).state == "delayed"

    async def test_a_later_delay_is_not_ended_by_it(self, store: Store) -> None:
        held = await active(store, id="job", attempts=3)
        await store.settle(QUEUE, [await_mark(held, "signal:paid", SECOND)], now=NOW)
        again = await claim_one(store, now=NOW + SECOND)
        await store.settle(QUEUE, [retry(again, DAY)], now=NOW + SECOND)

        await signal(store, "job", "signal:paid", now=NOW + SECOND)

        assert (await read(store, "job")).state == "delayed"

    async def test_a_plain_delay_is_not_ended_by_a_mark(self, store: Store) -> None:
        job = await add_one(store, delay=DAY)

        await signal(store, job.id, "signal:paid")

        assert (await read(store, job.id)).state == "delayed"


def _with(outcome: Outcome, marking: Marking) -> Outcome:
    return replace(outcome, marking=marking)
