"""Schedules as stores have them: versioned records with the instant at which they are due."""

from __future__ import annotations

import asyncio

from ...job.extras import Extras
from ...job.names import LONGEST_SCHEDULE_ID
from ...store.contract import Store
from ...store.values import DUE_SCHEDULES, Added, ScheduleWrite, ScheduleWritten, StallRules, StoredSchedule
from ..arrange import active, add, add_one, claim, entries, is_gone, read
from ..factories import DAY, ELSEWHERE, NOW, QUEUE, SECOND, keyed, new_flow, new_job
from .fixtures import NewHandle
from .listen import hears

RULES = StallRules()


async def write(store: Store, *writes: ScheduleWrite, queue: str = QUEUE, now: int = NOW) -> list[ScheduleWritten]:
    return await store.write_schedules(queue, writes, now=now)


def made_by(schedule: str) -> Extras:
    return Extras(schedule=schedule)


class TestWriteSchedules:
    async def test_a_schedule_is_created_with_version_one(self, store: Store) -> None:
        [written] = await write(store, ScheduleWrite("nightly", '{"cron":"0 9 * * *"}', NOW + DAY))

        stored = StoredSchedule("nightly", '{"cron":"0 9 * * *"}', NOW + DAY, 1)
        assert written == ScheduleWritten("done", stored)
        assert await store.schedules(QUEUE, ["nightly"]) == [stored]

    async def test_each_write_is_a_new_version(self, store: Store) -> None:
        await write(store, ScheduleWrite("nightly", '"a"', NOW))

        [written] = await write(store, ScheduleWrite("nightly", '"b"', None))

        assert written.schedule == StoredSchedule("nightly", '"b"', None, 2)

    async def test_a_write_with_another_version_does_nothing(self, store: Store) -> None:
        await write(store, ScheduleWrite("nightly", '"a"', NOW))
        [before] = await store.schedules(QUEUE)

        answers = await write(
            store,
            ScheduleWrite("nightly", '"b"', NOW + 1, expect=0, adds=(new_job("job"),)),
            ScheduleWrite("nightly", '"b"', NOW + 1, expect=2),
            ScheduleWrite("other", '"b"', NOW + 1, expect=1),
        )

        assert answers == [ScheduleWritten("lost", before), ScheduleWritten("lost", before), ScheduleWritten("lost")]
        assert await store.schedules(QUEUE) == [before]
        assert await is_gone(store, "job")

    async def test_the_expected_version_is_written(self, store: Store) -> None:
        await write(store, ScheduleWrite("nightly", '"a"', NOW, expect=0))

        [written] = await write(store, ScheduleWrite("nightly", '"b"', NOW + 1, expect=1))

        assert written.verdict == "done"

    async def test_jobs_are_added_in_the_same_step(self, store: Store) -> None:
        job = new_job("job", extras=made_by("nightly"))

        [written] = await write(store, ScheduleWrite("nightly", '"a"', NOW + DAY, adds=(job,)))

        assert written.added == [Added("job", "created")]
        stored = await read(store, "job")
        assert (stored.state, stored.extras) == ("waiting", Extras(schedule="nightly"))
        assert [one.id for one in await claim(store)] == ["job"]

    async def test_a_job_that_is_there_is_found(self, store: Store) -> None:
        await add(store, new_job("job"))

        [written] = await write(store, ScheduleWrite("nightly", '"a"', adds=(new_job("job"), new_job("new"))))

        assert written.added == [Added("job", "found"), Added("new", "created")]

    async def test_a_job_whose_key_is_held_is_not_added(self, store: Store) -> None:
        await add(store, keyed("key", id="holder"))

        [written] = await write(store, ScheduleWrite("nightly", '"a"', adds=(keyed("key", id="new"),)))

        assert written.added == [Added("holder", "deduplicated")]

    async def test_a_removed_schedule_is_gone(self, store: Store) -> None:
        await write(store, ScheduleWrite("nightly", '"a"', NOW))

        assert await write(store, ScheduleWrite("nightly", None)) == [ScheduleWritten("done")]

        assert await store.schedules(QUEUE) == []
        assert (await store.tick(QUEUE, RULES, now=NOW)).schedules == []
        [again] = await write(store, ScheduleWrite("nightly", '"a"', NOW, expect=0))
        assert again.verdict == "done"

    async def test_removing_one_that_is_not_there_is_lost_if_it_was_expected(self, store: Store) -> None:
        assert await write(store, ScheduleWrite("nightly", None, expect=1)) == [ScheduleWritten("lost")]
        assert await write(store, ScheduleWrite("nightly", None)) == [ScheduleWritten("done")]

    async def test_jobs_that_have_not_begun_are_removed_with_it(self, store: Store) -> None:
        held = await active(store, id="active")
        await add(store, new_job("waiting"), new_job("delayed", delay=DAY), new_job("other"))
        await add_one(store, id="final")
        await store.cancel(QUEUE, ["final"], now=NOW)
        ids = ("waiting", "delayed", "active", "final", "missing")

        await write(store, ScheduleWrite("nightly", None, removes=ids))

        found = await store.get(QUEUE, [*ids, "other"])
        assert [job and job.state for job in found] == [None, None, "active", "cancelled", None, "waiting"]
        assert held.id == "active"

    async def test_writes_of_one_call_see_each_other(self, store: Store) -> None:
        answers = await write(
            store,
            ScheduleWrite("nightly", '"a"', NOW, expect=0),
            ScheduleWrite("nightly", '"b"', NOW, expect=1),
            ScheduleWrite("nightly", '"c"', NOW, expect=1),
            ScheduleWrite("nightly", None, expect=2),
        )

        assert [answer.verdict for answer in answers] == ["done", "done", "lost", "done"]
        assert await store.schedules(QUEUE) == []

    async def test_what_it_removes_frees_keys_and_tells_parents(self, store: Store) -> None:
        root, child = new_flow(new_job("root", queue=ELSEWHERE), keyed("key", id="child"))
        await store.add([[root, child]], now=NOW)

        await write(store, ScheduleWrite("nightly", None, removes=("child",)))

        assert await store.dedupe(QUEUE, "key", now=NOW) is None
        assert (await read(store, "root", ELSEWHERE)).state == "waiting"

    async def test_a_lost_write_removes_nothing(self, store: Store) -> None:
        await add_one(store, id="job")

        await write(store, ScheduleWrite("nightly", None, expect=1, removes=("job",)))

        assert (await read(store, "job")).state == "waiting"

    async def test_a_job_that_is_removed_and_added_in_one_call_is_announced_in_that_order(self, store: Store) -> None:
        await add_one(store, id="job")

        await write(
            store,
            ScheduleWrite("old", None, adds=(new_job("other"),), removes=("job",)),
            ScheduleWrite("new", "1", adds=(new_job("job"),)),
        )

        moves = [entry.what for entry in await entries(store) for id, _ in entry.jobs if id == "job"]
        assert moves == ["add", "remove", "add"]

    async def test_of_many_writers_at_once_one_wins(self, store: Store, new_handle: NewHandle) -> None:
        await write(store, ScheduleWrite("nightly", '"a"', NOW))
        others = [new_handle() for _ in range(3)]
        handles = [store, *others] * 4
        firings = [
            ScheduleWrite("nightly", '"b"', NOW + DAY, expect=1, adds=(new_job(f"job-{number}"),))
            for number in range(len(handles))
        ]

        answers = await asyncio.gather(
            *(handle.write_schedules(QUEUE, [firing], now=NOW) for handle, firing in zip(handles, firings, strict=True))
        )

        assert sorted(answer.verdict for [answer] in answers) == ["done"] + ["lost"] * (len(handles) - 1)
        assert (await store.count(QUEUE))["waiting"] == 1
        for other in others:
            await other.close()

    async def test_a_queue_with_a_schedule_is_listed(self, store: Store) -> None:
        await write(store, ScheduleWrite("nightly", '"a"', NOW))

        assert await store.queues() == [QUEUE]

    async def test_obliterate_removes_schedules_and_keys(self, store: Store) -> None:
        await write(store, ScheduleWrite("nightly", '"a"', NOW))
        await add(store, keyed("key", "throttle", DAY))

        while (await store.obliterate(QUEUE, now=NOW)).more:
            pass

        assert await store.schedules(QUEUE) == []
        assert await store.dedupe(QUEUE, "key", now=NOW) is None
        assert await store.queues() == []

    async def test_clean_leaves_jobs_of_schedules_until_they_are_final(self, store: Store) -> None:
        await add(store, *(new_job(f"job-{n}", extras=made_by("nightly") if n % 2 else None) for n in range(6)))
        await add(
            store, *(new_job(f"later-{n}", extras=made_by("nightly") if n else None, delay=DAY) for n in range(2))
        )
        waiting = await store.clean(QUEUE, "waiting", limit=2, now=NOW)
        rest = await store.clean(QUEUE, "waiting", now=NOW)
        delayed = await store.clean(QUEUE, "delayed", now=NOW)

        assert (waiting.ids, waiting.more) == (["job-0", "job-2"], True)
        assert (rest.ids, rest.more) == (["job-4"], False)
        assert delayed.ids == ["later-0"]
        await store.cancel(QUEUE, ["job-1"], now=NOW)
        assert (await store.clean(QUEUE, "cancelled", now=NOW)).ids == ["job-1"]

    async def test_a_listener_of_schedules_is_woken(self, store: Store) -> None:
        listener = store.listen("schedules", [QUEUE])
        await store.schedules(QUEUE)
        while await listener.wait(0.05):
            pass

        await store.write_schedules(QUEUE, [ScheduleWrite("nightly", '"a"', NOW)])

        assert await hears(listener)
        listener.close()


class TestReadSchedules:
    async def test_pages_are_ordered_by_id(self, store: Store) -> None:
        await write(store, *(ScheduleWrite(id, f'"{id}"', NOW) for id in ("b", "a", "B", "a:1", "c")))

        first = await store.schedules(QUEUE, limit=2)
        second = await store.schedules(QUEUE, after=first[-1].id, limit=10)

        assert [one.id for one in first + second] == sorted(["b", "a", "B", "a:1", "c"])

    async def test_by_id_only_those_that_exist(self, store: Store) -> None:
        await write(store, ScheduleWrite("a", '"é\\u0000"', NOW), ScheduleWrite("b", "1"))

        assert [one.id for one in await store.schedules(QUEUE, ["b", "missing", "a"])] == ["b", "a"]
        assert (await store.schedules(QUEUE, ["a"]))[0].value == '"é\\u0000"'

    async def test_schedules_are_of_one_queue(self, store: Store) -> None:
        await write(store, ScheduleWrite("a", "1", NOW), queue=ELSEWHERE)

        assert await store.schedules(QUEUE) == []

    async def test_long_ids(self, store: Store) -> None:
        id = "x" * LONGEST_SCHEDULE_ID
        await write(store, ScheduleWrite(id, "1", NOW))

        assert [one.id for one in await store.schedules(QUEUE, [id])] == [id]


class TestTickSchedules:
    async def test_a_tick_answers_those_that_are_due_the_earliest_first(self, store: Store) -> None:
        await write(
            store,
            ScheduleWrite("later", "1", NOW + 1),
            ScheduleWrite("now", "2", NOW),
            ScheduleWrite("long-ago", "3", NOW - DAY),
            ScheduleWrite("paused", "4", None),
        )

        ticked = await store.tick(QUEUE, RULES, now=NOW)

        assert ticked.schedules == [StoredSchedule("long-ago", "3", NOW - DAY, 1), StoredSchedule("now", "2", NOW, 1)]

    async def test_it_says_when_the_next_is_due(self, store: Store) -> None:
        await write(store, ScheduleWrite("a", "1", NOW + SECOND), ScheduleWrite("b", "1", NOW + 2 * SECOND))

        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at == NOW + SECOND

        await write(store, ScheduleWrite("a", "1", None))
        assert (await store.tick(QUEUE, RULES, now=NOW)).next_at == NOW + 2 * SECOND

    async def test_they_are_due_until_they_are_written(self, store: Store) -> None:
        await write(store, ScheduleWrite("a", "1", NOW))

        for later in (0, SECOND):
            ticked = await store.tick(QUEUE, RULES, now=NOW + later)
            assert ([one.id for one in ticked.schedules], ticked.next_at) == (["a"], NOW)

        await write(store, ScheduleWrite("a", "1", NOW + SECOND, expect=1))
        assert (await store.tick(QUEUE, RULES, now=NOW)).schedules == []

    async def test_many_are_answered_in_portions(self, store: Store) -> None:
        count = DUE_SCHEDULES + 50
        await write(store, *(ScheduleWrite(f"s-{n:04}", "1", NOW + n) for n in range(count)))

        ticked = await store.tick(QUEUE, RULES, now=NOW + DAY)

        assert [one.id for one in ticked.schedules] == [f"s-{n:04}" for n in range(DUE_SCHEDULES)]
