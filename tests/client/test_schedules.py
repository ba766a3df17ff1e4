"""Schedules as applications make, read and change them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ropeway import InvalidInput, Queue, Schedule, Worker
from ropeway.errors import (
    InvalidDuration,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTask,
    ScheduleNotFound,
    StoreBusy,
    StoreCorrupt,
)
from ropeway.job.instants import instant_of
from ropeway.job.names import LONGEST_SCHEDULE_ID
from ropeway.job.schedules import HISTORY, NOT_FINAL, tick_id
from ropeway.store.contract import Store
from ropeway.store.values import ScheduleWrite
from ropeway.testing.factories import DAY, MINUTE, QUEUE
from tests.patience import PATIENCE
from tests.worker.watching import told

from .fixtures import MakeQueue
from .tampering import Tampering
from .ticking import fire_next, tick

LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)


async def read(queue: Queue, id: str) -> Schedule:
    schedule = await queue.schedules.get(id)
    assert schedule is not None
    return schedule


async def jobs_of(queue: Queue, *states: str) -> list[str]:
    return [job.id for job in (await queue.find(*states)).jobs]


async def put(queue: Queue, id: str = "pulse", **given: Any) -> Schedule:
    """A schedule; only what matters to the test is given."""
    options = {} if "cron" in given else {"every": 60}
    return await queue.schedule(id, "ping", {"n": 1}, **{**options, **given})


class TestMaking:
    @pytest.mark.every_store
    async def test_a_schedule_is_stored_with_its_next_tick(self, queue: Queue):
        made = await queue.schedule("nightly", "report", {"kind": "daily"}, cron="0 9 * * *", tz="America/New_York")

        assert (made.queue, made.id, made.name, made.data) == (QUEUE, "nightly", "report", {"kind": "daily"})
        assert (made.overlap, made.missed, made.paused, made.fired, made.history) == ("allow", "once", False, 0, ())
        assert made.description == "at 09:00 every day, New York"
        assert made.next_at is not None
        assert (made.next_at.hour, made.next_at.tzinfo) == (9, ZoneInfo("America/New_York"))
        assert datetime.now(UTC) < made.next_at <= datetime.now(UTC) + timedelta(days=1, hours=1)
        assert await read(queue, "nightly") == made
        assert await jobs_of(queue) == []

    async def test_a_second_call_with_the_same_changes_nothing(self, queue: Queue):
        await put(queue)
        await fire_next(queue, "pulse")
        before = await read(queue, "pulse")

        assert await put(queue) == before
        assert len(before.history) == 1

    async def test_a_change_keeps_history_and_count(self, queue: Queue):
        made = await put(queue)
        await fire_next(queue, "pulse")
        before = await read(queue, "pulse")
        changed = await put(queue, every=None, cron="0 9 * * *", overlap="skip", missed="none")

        assert (changed.history, changed.fired, changed.created_at) == (before.history, 1, made.created_at)
        assert (changed.rule.cron, changed.overlap, changed.missed) == ("0 9 * * *", "skip", "none")
        assert changed.next_at is not None
        assert (changed.next_at.hour, changed.next_at.minute) == (9, 0)
        assert changed.version == before.version + 1

    async def test_a_tick_that_is_due_survives_a_change_of_its_job(self, queue: Queue, store: Store):
        """As when a worker starts with new options, a moment after the tick."""
        due = (await put(queue)).next_at
        changed = await queue.schedule("pulse", "ping", {"n": 2}, every=60, attempts=3)

        assert changed.next_at == due
        await fire_next(queue, "pulse", late=5)
        [job] = (await queue.find("waiting")).jobs
        assert job.data == {"n": 2}

    async def test_a_new_rule_has_its_own_ticks(self, queue: Queue):
        await put(queue, every="1 day")
        changed = await put(queue, every="1 minute")

        assert changed.next_at is not None
        assert changed.next_at <= datetime.now(UTC) + timedelta(minutes=1)

    async def test_one_that_is_paused_stays_so(self, queue: Queue):
        await put(queue)
        await queue.schedules.pause("pulse")
        changed = await put(queue, every=120)

        assert (changed.paused, changed.next_at) == (True, None)

    async def test_options_of_the_job_are_those_of_every_job(self, queue: Queue):
        await queue.schedule(
            "pulse", "ping", every=60, attempts=3, priority=-5, tags=["red"], expires="1 hour", dead_letter="graves"
        )
        at = await fire_next(queue, "pulse")
        job = await queue.get(tick_id("pulse", at))

        assert job is not None
        snapshot = job.snapshot
        assert (snapshot.priority, snapshot.tags, snapshot.schedule) == (-5, ("red",), "pulse")
        assert snapshot.dead_letter == "graves"

    async def test_the_defaults_of_the_queue_hold_for_its_schedules(self, make_queue: MakeQueue):
        queue = make_queue(priority=7)
        await put(queue)
        await fire_next(queue, "pulse")

        assert [job.snapshot.priority for job in (await queue.find()).jobs] == [7]

    async def test_immediately_fires_once_when_it_is_created(self, queue: Queue):
        made = await put(queue, immediately=True)
        await put(queue, immediately=True)
        await put(queue, every=120, immediately=True)

        [job] = await jobs_of(queue, "waiting")
        assert [tick.job for tick in made.history] == [job]
        assert made.fired == 1
        assert made.next_at is not None

    async def test_immediately_counts_for_the_limit(self, queue: Queue):
        made = await put(queue, immediately=True, limit=1)

        assert (made.fired, made.next_at, made.upcoming()) == (1, None, [])

    async def test_two_schedules_may_make_the_same_job(self, queue: Queue):
        await put(queue, "a", overlap="skip")
        await put(queue, "b", overlap="skip")
        at = await fire_next(queue, "a")

        assert await jobs_of(queue) == [tick_id("a", at), tick_id("b", at)]

    @pytest.mark.every_store
    async def test_the_longest_id_can_do_all_that_others_can(self, queue: Queue):
        id = "x" * LONGEST_SCHEDULE_ID
        await put(queue, id, overlap="queue")
        await fire_next(queue, id)
        await queue.schedules.run(id)

        assert len(await jobs_of(queue)) == 1
        assert await queue.schedules.remove(id)
        assert await jobs_of(queue) == []

    async def test_an_id_that_leaves_no_room_for_that_of_a_dead_letter_is_refused(self, queue: Queue):
        with pytest.raises(InvalidOption, match="too long for a job with a dead letter"):
            await put(queue, "x" * LONGEST_SCHEDULE_ID, dead_letter="graves")

    async def test_an_id_that_is_an_enum_is_its_text(self, queue: Queue):
        class Ids(str, Enum):  # noqa: UP042 - its str() is another text
            PULSE = "pulse"

        await put(queue, Ids.PULSE)
        await queue.schedules.run(Ids.PULSE)

        assert (await read(queue, "pulse")).id == "pulse"
        assert (await jobs_of(queue))[0].startswith("schedule:pulse:")

    @pytest.mark.every_store
    async def test_many_that_make_it_at_once_make_one(self, queue: Queue):
        made = await asyncio.gather(*(put(queue, immediately=True) for _ in range(10)))

        assert {schedule.version for schedule in made} == {1}
        assert len(await jobs_of(queue)) == 1

    async def test_writers_at_once_all_have_their_way(self, queue: Queue):
        await put(queue)
        await asyncio.gather(*(queue.schedules.run("pulse") for _ in range(8)))

        assert len((await read(queue, "pulse")).history) == 8
        assert len(await jobs_of(queue)) == 8

    async def test_a_schedule_that_others_change_all_the_time_is_given_up(
        self, tampered_queue: Queue, tampering: Tampering, store: Store
    ):
        await put(tampered_queue)
        [there] = await store.schedules(QUEUE)

        async def come_before(*_: Any) -> None:
            await store.write_schedules(QUEUE, [ScheduleWrite("pulse", there.value, there.next_at)])

        tampering.before["write_schedules"] = come_before
        with pytest.raises(StoreBusy, match="changes all the time"):
            await tampered_queue.schedules.pause("pulse")
        with pytest.raises(StoreBusy, match="changes all the time"):
            await tampered_queue.schedules.remove("pulse")


class TestReading:
    async def test_all_are_listed_by_id(self, queue: Queue, make_queue: MakeQueue):
        for id in ("b", "a", "c"):
            await put(queue, id)
        await put(make_queue("elsewhere"), "d")

        assert [schedule.id for schedule in await queue.schedules.list()] == ["a", "b", "c"]

    async def test_more_than_a_page_are_listed(self, queue: Queue, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("ropeway.client.schedules.PAGE", 2)
        for number in range(5):
            await put(queue, f"s-{number}")

        assert [schedule.id for schedule in await queue.schedules.list()] == [f"s-{n}" for n in range(5)]

    async def test_one_that_does_not_exist_is_none(self, queue: Queue):
        assert await queue.schedules.get("missing") is None

    async def test_its_next_ticks_can_be_looked_at(self, queue: Queue):
        made = await put(queue, cron="0 9 * * *", tz="Europe/Berlin", limit=3)
        found = made.upcoming(5)

        assert found[0] == made.next_at
        assert [moment.hour for moment in found] == [9, 9, 9]
        assert made.upcoming(1, after=LATER) == [
            LATER.astimezone(ZoneInfo("Europe/Berlin")).replace(hour=9, minute=0, second=0)
            + timedelta(days=LATER.astimezone(ZoneInfo("Europe/Berlin")).hour >= 9)
        ]

    async def test_a_paused_one_can_be_looked_at_too(self, queue: Queue):
        await put(queue)
        paused = await queue.schedules.pause("pulse")

        assert len(paused.upcoming()) == 5

    @pytest.mark.parametrize("count", [0, -1, 1_001, 1.5, True, "5"])
    async def test_how_many_are_looked_at_is_bounded(self, queue: Queue, count: Any):
        with pytest.raises(InvalidOption, match="count"):
            (await put(queue)).upcoming(count)

    async def test_it_can_be_given_as_json(self, queue: Queue):
        await put(queue, immediately=True)
        fields = json.loads(json.dumps((await read(queue, "pulse")).as_dict()))

        assert (fields["id"], fields["rule"]["every"], len(fields["history"])) == ("pulse", 60_000, 1)

    async def test_the_history_has_the_newest_ticks(self, queue: Queue):
        await put(queue)
        for _ in range(HISTORY + 2):
            last = await fire_next(queue, "pulse")
        schedule = await read(queue, "pulse")

        assert (len(schedule.history), schedule.fired) == (HISTORY, HISTORY + 2)
        assert schedule.history[-1].job == tick_id("pulse", last)

    async def test_a_zone_that_this_machine_does_not_know_is_shown_in_utc(self, queue: Queue, store: Store):
        await put(queue, cron="0 9 * * *", tz="Europe/Berlin")
        [there] = await store.schedules(QUEUE)
        value = there.value.replace("Europe/Berlin", "Mars/Base")
        await store.write_schedules(QUEUE, [ScheduleWrite("pulse", value, there.next_at)])

        [schedule] = await queue.schedules.list()
        assert schedule.next_at is not None
        assert schedule.next_at.tzinfo is UTC


class TestDamage:
    @pytest.fixture(autouse=True)
    async def damaged(self, queue: Queue, store: Store) -> None:
        await put(queue, "whole")
        await store.write_schedules(QUEUE, [ScheduleWrite("damaged", '{"rule":', None)])

    async def test_the_others_are_listed(self, queue: Queue, caplog: pytest.LogCaptureFixture):
        assert [schedule.id for schedule in await queue.schedules.list()] == ["whole"]
        assert "schedule 'damaged' of 'letters' cannot be read" in caplog.text

    async def test_it_is_named_when_it_is_asked_for(self, queue: Queue):
        calls: list[Callable[[str], Awaitable[object]]] = [
            queue.schedules.get,
            queue.schedules.pause,
            queue.schedules.resume,
            queue.schedules.run,
        ]
        for call in calls:
            with pytest.raises(StoreCorrupt, match="remove it, or make it again"):
                await call("damaged")

    async def test_it_can_be_made_again(self, queue: Queue):
        assert (await put(queue, "damaged")).next_at is not None

    async def test_it_can_be_removed(self, queue: Queue):
        assert await queue.schedules.remove("damaged")
        assert await queue.schedules.get("damaged") is None


class TestPausing:
    @pytest.mark.every_store
    async def test_a_paused_one_does_not_fire(self, queue: Queue, store: Store):
        await put(queue)
        paused = await queue.schedules.pause("pulse")
        await tick(queue, await store.clock() + DAY)

        assert (paused.paused, paused.next_at) == (True, None)
        assert await jobs_of(queue) == []

    async def test_a_tick_that_is_due_when_it_is_paused_is_left_out(self, queue: Queue):
        due = (await put(queue)).next_at
        await queue.schedules.pause("pulse")
        assert due is not None
        await tick(queue, instant_of(due) + 1)

        assert await jobs_of(queue) == []

    async def test_resumed_it_goes_on_with_its_next_tick(self, queue: Queue, store: Store):
        await put(queue)
        await queue.schedules.pause("pulse")
        resumed = await queue.schedules.resume("pulse")
        assert resumed.next_at is not None
        assert await store.clock() < instant_of(resumed.next_at) <= await store.clock() + MINUTE

        await fire_next(queue, "pulse")
        assert (await read(queue, "pulse")).fired == 1

    async def test_pausing_twice_and_resuming_what_is_not_paused_change_nothing(self, queue: Queue):
        made = await put(queue)
        assert await queue.schedules.resume("pulse") == made
        paused = await queue.schedules.pause("pulse")
        assert await queue.schedules.pause("pulse") == paused

    async def test_jobs_that_it_made_go_on(self, queue: Queue):
        await put(queue, immediately=True)
        await queue.schedules.pause("pulse")

        assert len(await jobs_of(queue, "waiting")) == 1


class TestRunning:
    @pytest.mark.every_store
    async def test_a_job_is_made_now_and_the_next_tick_stays(self, queue: Queue):
        made = await put(queue)
        job = await queue.schedules.run("pulse")
        schedule = await read(queue, "pulse")

        assert (job.name, job.data, await job.state()) == ("ping", {"n": 1}, "waiting")
        assert (schedule.next_at, schedule.fired) == (made.next_at, 0)
        assert [tick.job for tick in schedule.history] == [job.id]

    async def test_a_paused_one_and_one_that_has_ended_can_be_run(self, queue: Queue):
        await put(queue, immediately=True, limit=1)
        await put(queue, "paused")
        await queue.schedules.pause("paused")

        assert (await queue.schedules.run("pulse")).created
        assert (await queue.schedules.run("paused")).created
        assert (await read(queue, "paused")).next_at is None

    async def test_overlap_holds_and_the_history_says_so(self, queue: Queue):
        await put(queue, overlap="skip")
        first = await queue.schedules.run("pulse")
        second = await queue.schedules.run("pulse")

        assert (second.id, second.created) == (first.id, False)
        assert [(tick.job, tick.skipped) for tick in (await read(queue, "pulse")).history] == [
            (first.id, None),
            (first.id, NOT_FINAL),
        ]

    async def test_its_result_can_be_waited_for(self, queue: Queue):
        await put(queue)
        async with Worker(queue, _answer):
            assert await (await queue.schedules.run("pulse")).result(timeout=PATIENCE) == {"n": 1}


class TestRemoving:
    @pytest.mark.every_store
    async def test_it_goes_with_its_pending_jobs(self, queue: Queue):
        await put(queue)
        await fire_next(queue, "pulse")
        other = await queue.add("ping", {"n": 1})

        assert await queue.schedules.remove("pulse")
        assert await queue.schedules.list() == []
        assert await jobs_of(queue) == [other.id]

    async def test_jobs_that_have_begun_or_ended_stay(self, queue: Queue):
        await put(queue)
        ended = await queue.schedules.run("pulse")
        await ended.cancel()
        begun = await queue.schedules.run("pulse")
        await queue.schedules.run("pulse")
        [claimed] = await Worker(queue).claim()

        await queue.schedules.remove("pulse")
        assert sorted(await jobs_of(queue)) == sorted([begun.id, ended.id])
        await claimed.complete()

    async def test_what_does_not_exist_is_not_removed(self, queue: Queue):
        assert await queue.schedules.remove("missing") is False

    async def test_removed_and_made_again_it_begins_anew(self, queue: Queue):
        await put(queue, immediately=True)
        await queue.schedules.remove("pulse")
        again = await put(queue)

        assert (again.fired, again.history, again.version) == (0, (), 1)

    async def test_drain_and_clean_leave_its_pending_job(self, queue: Queue):
        await put(queue, immediately=True)
        await queue.add("ping")

        assert await queue.drain(delayed=True) == 1
        assert await queue.clean(0, "waiting") == []
        assert len(await jobs_of(queue)) == 1


class TestMissingOnes:
    @pytest.mark.parametrize("call", ["pause", "resume", "run"])
    async def test_a_schedule_that_does_not_exist_is_named(self, queue: Queue, call: str):
        with pytest.raises(ScheduleNotFound, match="missing") as caught:
            await getattr(queue.schedules, call)("missing")
        assert (caught.value.queue, caught.value.schedule_id) == (QUEUE, "missing")

    @pytest.mark.parametrize("call", ["get", "pause", "resume", "run", "remove"])
    @pytest.mark.parametrize("id", ["", "a b", "x" * 201, 5, None])
    async def test_what_is_no_id_is_refused(self, queue: Queue, call: str, id: Any):
        with pytest.raises(InvalidName, match="schedule id"):
            await getattr(queue.schedules, call)(id)


class TestRepeat:
    async def test_add_with_repeat_makes_a_schedule_and_answers_its_first_job(self, queue: Queue):
        job = await queue.add("daily-report", {"a": 1}, repeat={"cron": "0 9 * * *", "tz": "America/New_York"})
        [schedule] = await queue.schedules.list()
        at = await fire_next(queue, schedule.id)

        assert (schedule.name, schedule.data, schedule.rule.tz) == ("daily-report", {"a": 1}, "America/New_York")
        assert job.id == tick_id(schedule.id, at)
        assert await job.state() == "waiting"

    async def test_the_same_again_is_the_same_schedule_and_its_next_job(self, queue: Queue):
        await queue.add("report", repeat={"every": 60})
        [schedule] = await queue.schedules.list()
        await fire_next(queue, schedule.id)
        again = await queue.add("report", repeat={"every": 60})
        due = await fire_next(queue, schedule.id)

        assert again.id == tick_id(schedule.id, due)
        assert len(await queue.schedules.list()) == 1

    async def test_a_rule_that_is_written_otherwise_is_the_same(self, queue: Queue):
        await queue.add("report", repeat={"every": 60})
        await queue.add("report", repeat={"every": timedelta(minutes=1), "overlap": "skip", "immediately": True})

        [schedule] = await queue.schedules.list()
        assert schedule.overlap == "skip"

    async def test_another_rule_is_another_schedule(self, queue: Queue):
        await queue.add("report", repeat={"every": 60})
        await queue.add("report", repeat={"every": 120})

        assert len(await queue.schedules.list()) == 2

    async def test_a_given_id_is_that_of_the_schedule(self, queue: Queue):
        await queue.add("report", repeat={"every": 60}, id="mine", attempts=3)

        assert [schedule.id for schedule in await queue.schedules.list()] == ["mine"]

    async def test_immediately_answers_the_job_that_it_made(self, queue: Queue):
        job = await queue.add("report", repeat={"every": 60, "immediately": True})

        assert await job.state() == "waiting"

    async def test_a_paused_one_answers_a_job_to_come(self, queue: Queue):
        await queue.add("report", repeat={"every": 60}, id="mine")
        await queue.schedules.pause("mine")
        job = await queue.add("report", repeat={"every": 60}, id="mine")

        assert job.id.startswith("schedule:mine:")

    async def test_one_that_has_ended_answers_its_last_job(self, queue: Queue):
        first = await queue.add("report", repeat={"every": 60, "limit": 1, "immediately": True}, id="mine")
        again = await queue.add("report", repeat={"every": 60, "limit": 1, "immediately": True}, id="mine")
        await queue.schedules.pause("mine")

        assert again.id == first.id

    @pytest.mark.parametrize(
        ("repeat", "message"),
        [
            ("daily", "repeat.*use"),
            ([("every", 60)], "repeat.*use"),
            ({5: 60}, "repeat.*use"),
            ({}, "neither"),
            ({"pattern": "* * * * *"}, "unknown option 'pattern'"),
            ({"every": 0}, "every"),
        ],
    )
    async def test_what_is_no_rule_is_refused(self, queue: Queue, repeat: Any, message: str):
        with pytest.raises(InvalidOption, match=message):
            await queue.add("report", repeat=repeat)

    async def test_it_is_no_part_of_a_transaction(self, queue: Queue):
        with pytest.raises(InvalidOption, match="tx"):
            await queue.add("report", repeat={"every": 60}, tx=object())


class TestTasks:
    @pytest.mark.every_store
    async def test_the_schedule_of_a_task_is_stored_when_a_worker_starts(self, queue: Queue):
        @queue.task(cron="*/5 * * * *", tz="Europe/Berlin", overlap="skip", attempts=3, priority=4)
        async def sweep(deep: bool = False) -> bool:
            return deep

        assert await queue.schedules.list() == []
        async with Worker(queue):
            [schedule] = await queue.schedules.list()
            job = await queue.schedules.run("sweep")
            assert await job.result(timeout=PATIENCE) is False

        assert (schedule.id, schedule.name, schedule.data, schedule.overlap) == ("sweep", "sweep", {}, "skip")
        assert (schedule.rule.cron, schedule.rule.tz) == ("*/5 * * * *", "Europe/Berlin")
        snapshot = await job.refresh()
        assert (snapshot.priority, snapshot.attempts) == (4, 3)

    async def test_workers_that_start_later_change_nothing(self, queue: Queue):
        @queue.task(every="1 hour")
        async def sweep() -> None: ...

        for _ in range(2):
            async with Worker(queue):
                pass
        assert (await read(queue, "sweep")).version == 1

    async def test_a_pause_survives_the_start_of_a_worker(self, queue: Queue):
        @queue.task(every="1 hour")
        async def sweep() -> None: ...

        async with Worker(queue):
            await queue.schedules.pause("sweep")
        async with Worker(queue):
            assert (await read(queue, "sweep")).paused

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"cron": "nightly"}, "use five fields"),
            ({"cron": "@daily", "every": 60}, "both"),
            ({"tz": "UTC"}, "neither"),
            ({"evry": 5}, "did you mean 'every'"),
            ({"every": 60, "overlap": "twice"}, "overlap"),
            ({"every": 60, "missed": "some"}, "missed"),
        ],
    )
    def test_a_rule_that_makes_no_sense_is_refused_at_the_decorator(
        self, queue: Queue, options: dict[str, Any], message: str
    ):
        with pytest.raises(InvalidOption, match=message):
            queue.task(**options)

    def test_a_task_that_needs_arguments_is_refused_at_the_decorator(self, queue: Queue):
        async def resize(path: str) -> None: ...

        with pytest.raises(InvalidTask, match=r"parameter needs a default.*path"):
            queue.task(cron="@daily")(resize)

    def test_a_name_that_is_no_id_of_a_schedule_is_refused(self, queue: Queue):
        async def sweep() -> None: ...

        with pytest.raises(InvalidName, match="schedule id"):
            queue.task(name="sweep the floor", cron="@daily")(sweep)


class TestSync:
    async def test_code_without_a_loop_has_the_same_calls(self, queue: Queue):
        def use() -> list[Any]:
            sync = queue.sync
            made = sync.schedule("pulse", "ping", {"n": 1}, every=60)
            assert sync.schedules.put("pulse", "ping", {"n": 1}, every=60) == made
            assert sync.schedules.get("pulse") == made
            assert sync.schedules.pause("pulse").paused
            assert not sync.schedules.resume("pulse").paused
            job = sync.schedules.run("pulse")
            repeated = sync.add("ping", repeat={"every": 60}, id="repeated")
            listed = [schedule.id for schedule in sync.schedules.list()]
            return [job.state(), listed, repeated.id[:18], sync.schedules.remove("pulse")]

        assert await asyncio.to_thread(use) == ["waiting", ["pulse", "repeated"], "schedule:repeated:", True]


BAD: list[tuple[dict[str, Any], type[InvalidInput], str]] = [
    ({"id": ""}, InvalidName, "schedule id"),
    ({"id": "a b"}, InvalidName, "schedule id"),
    ({"id": "x" * 201}, InvalidName, "1 to 200"),
    ({"id": 5}, InvalidName, "schedule id"),
    ({"name": ""}, InvalidName, "job name"),
    ({"data": object()}, InvalidPayload, "data"),
    ({"every": None}, InvalidOption, "neither"),
    ({"cron": "@daily"}, InvalidOption, "both"),
    ({"every": 0}, InvalidOption, "shorter than 1 s"),
    ({"every": None, "cron": "0 0 30 2 *"}, InvalidOption, "cron"),
    ({"every": None, "cron": "@daily", "tz": "Europe/Berln"}, InvalidOption, "Europe/Berlin"),
    ({"start": LATER, "end": LATER}, InvalidOption, "end.*not after"),
    ({"end": datetime(2001, 1, 1, tzinfo=UTC)}, InvalidOption, "'end' has passed.*no tick left: every minute"),
    (
        {"every": "1 day", "start": LATER, "end": LATER + timedelta(seconds=1)},
        InvalidOption,
        "'end' comes before the first tick",
    ),
    ({"limit": 0}, InvalidOption, "limit"),
    ({"overlap": "twice"}, InvalidOption, "overlap"),
    ({"overlap": None}, InvalidOption, "overlap"),
    ({"missed": "some"}, InvalidOption, "missed"),
    ({"immediately": 1}, InvalidOption, "immediately"),
    ({"delay": 5}, InvalidOption, "delay.*not for schedules"),
    ({"dedupe": "k"}, InvalidOption, "dedupe.*'overlap'"),
    ({"expires": LATER}, InvalidOption, "expires.*give a duration"),
    ({"expires": -1}, InvalidDuration, "expires"),
    ({"dead_letter": QUEUE}, InvalidOption, "own queue"),
    ({"atempts": 3}, InvalidOption, "did you mean 'attempts'"),
    ({"timezone": "UTC"}, InvalidOption, "timezone.*did you mean 'tz'"),
    ({"every": None, "evry": 5}, InvalidOption, "evry.*did you mean 'every'"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD)
async def test_what_makes_no_sense_is_refused_and_nothing_is_stored(
    queue: Queue, given: dict[str, Any], error: type[InvalidInput], message: str
):
    full = {"id": "pulse", "name": "ping", "data": None, "every": 60, **given}
    with pytest.raises(error, match=message):
        await queue.schedule(full.pop("id"), full.pop("name"), full.pop("data"), **full)

    assert await queue.schedules.list() == []


async def test_the_id_of_a_job_is_not_for_schedules(queue: Queue):
    with pytest.raises(InvalidOption, match=r"id.*each tick makes its own"):
        await queue.schedules.put("pulse", name="ping", every=60, id="mine")


@pytest.mark.every_store
async def test_obliterate_takes_schedules_along(queue: Queue):
    await put(queue, immediately=True)
    await queue.obliterate()

    assert await queue.schedules.list() == []
    assert await jobs_of(queue) == []


@pytest.mark.every_store
async def test_skips_are_noted_with_the_job_because_of_which(queue: Queue):
    await put(queue, overlap="skip")
    first = await fire_next(queue, "pulse")
    second = await fire_next(queue, "pulse")
    schedule = await read(queue, "pulse")

    holder = tick_id("pulse", first)
    assert await jobs_of(queue) == [holder]
    assert [(tick.job, tick.skipped) for tick in schedule.history] == [(holder, None), (holder, NOT_FINAL)]
    assert [instant_of(tick.at) for tick in schedule.history] == [first, second]
    await told(queue, "deduplicated")


async def _answer(job: Any) -> Any:
    return job.data
