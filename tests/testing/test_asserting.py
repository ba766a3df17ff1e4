"""What was added to a queue is found, and what was not is explained."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import msgspec
import pydantic
import pytest

from ropeway import Backoff, Dedupe, InvalidInput, Job, JobType, Keep, Queue
from ropeway.testing import FakeClock, FakeStore, added, assert_added, assert_not_added, drain


async def ignore(job: Job) -> None:
    pass


class TestAdded:
    async def test_it_lists_what_was_added_in_order(self, queue: Queue):
        await queue.add("letter", {"to": "a"})
        await queue.add_many([("parcel", 1), ("letter", 2)])

        assert [(job.name, job.data) for job in added(queue)] == [("letter", {"to": "a"}), ("parcel", 1), ("letter", 2)]
        assert [job.data for job in added(queue, "letter")] == [{"to": "a"}, 2]

    async def test_what_is_finished_and_removed_was_added_all_the_same(self, queue: Queue):
        await queue.add("letter", remove_on_complete=True)
        await drain(queue, ignore)

        assert len(added(queue)) == 1

    async def test_a_job_that_was_found_there_was_added_once(self, queue: Queue):
        for _ in range(2):
            await queue.add("letter", id="one")

        assert [job.id for job in added(queue)] == ["one"]

    async def test_each_queue_has_its_own(self, queue: Queue, store: FakeStore):
        await Queue("others", store=store).add("letter")

        assert added(queue) == []

    def test_a_queue_of_the_real_world_is_refused(self):
        with pytest.raises(InvalidInput, match="no test's store"):
            added(Queue("letters", "memory://"))


class TestAssertAdded:
    async def test_a_job_is_found_by_part_of_its_data(self, queue: Queue):
        await queue.add("letter", {"to": {"name": "Ann", "zip": 1234}, "pages": [1, 2]})

        job = assert_added(queue, "letter", data={"to": {"name": "Ann"}, "pages": [1, int]})
        assert job.data["to"]["zip"] == 1234
        assert_added(queue, data={"to": {"zip": lambda code: code > 1000}})
        assert_added(queue, data={"to": ANY})
        assert_added(queue, "letter", data=dict)

    @pytest.mark.parametrize(
        "data", [{"to": "Bob"}, {"from": "Ann"}, {"to": int}, {"to": str.isdigit}, ["Ann"], None, {"pages": [1]}]
    )
    async def test_other_data_is_not_it(self, queue: Queue, data: object):
        await queue.add("letter", {"to": "Ann", "pages": [1, 2]})
        with pytest.raises(AssertionError):
            assert_added(queue, "letter", data=data)

        assert_not_added(queue, "letter", data=data)

    async def test_a_job_is_found_by_its_options_as_they_are_written(self, queue: Queue):
        await queue.add(
            "letter",
            id="mine",
            delay="5 minutes",
            priority=3,
            attempts=5,
            backoff=Backoff.exponential(1),
            timeout="1m",
            remove_on_complete=Keep(age="1 hour"),
        )

        assert_added(queue, "letter", id="mine", delay=300, priority=3, lifo=False, attempts=5)
        assert_added(queue, "letter", backoff=Backoff.exponential("1 s"), timeout=60)
        assert_added(queue, "letter", remove_on_complete=Keep(age=3600), delay=timedelta(minutes=5))
        assert_added(queue, "letter", delay=lambda delay: delay > timedelta(minutes=1))
        assert_not_added(queue, "letter", delay=0)
        assert_not_added(queue, "letter", attempts=1)

    async def test_an_instant_is_the_same_as_the_delay_until_then(self, queue: Queue, clock: FakeClock):
        tomorrow = clock.now() + timedelta(days=1)
        await queue.add("letter", delay=tomorrow)

        assert_added(queue, "letter", delay="1 day")
        assert_added(queue, "letter", delay=tomorrow)

    async def test_a_job_is_found_by_its_expiry_dead_letter_and_dedupe_key(self, queue: Queue, clock: FakeClock):
        throttle = Dedupe("k", "throttle", ttl=5)
        await queue.add("letter", expires="1 hour", dead_letter="dead", dedupe=throttle)
        await queue.add("parcel", {"a": 1, "b": 2}, dedupe=Dedupe.by_data())

        assert_added(queue, "letter", expires=3600, dead_letter="dead", dedupe=throttle)
        assert_added(queue, "letter", expires=clock.now() + timedelta(hours=1))
        assert_added(queue, "parcel", dedupe=Dedupe.by_data(), expires=None, dead_letter=None)
        assert_not_added(queue, "letter", expires="2 hours")
        assert_not_added(queue, "letter", dead_letter="other")
        assert_not_added(queue, "letter", dedupe="k")

    async def test_they_are_counted(self, queue: Queue):
        await queue.add_many(["letter", "letter", "parcel"])

        assert_added(queue, "letter", count=2)
        with pytest.raises(AssertionError, match=r"expected 1 times a job 'letter' in 'letters'; found 2"):
            assert_added(queue, "letter", count=1)

    async def test_the_nearest_is_shown_with_what_differs(self, queue: Queue):
        await queue.add("parcel", {"to": "Ann"})
        await queue.add("letter", {"to": "Bob", "pages": 2}, delay=60)
        with pytest.raises(AssertionError) as caught:
            assert_added(queue, "letter", data={"to": "Ann", "cc": str}, delay=0)

        assert str(caught.value).splitlines() == [
            "expected a job 'letter' in 'letters' with data {'to': 'Ann', 'cc': <class 'str'>}, delay 0; found 0",
            "the nearest is",
            "  letter {'to': 'Bob', 'pages': 2} delay=0:01:00",
            "    data.to is 'Bob': expected 'Ann'",
            "    data.cc is missing: expected a value of type str",
            "    delay is datetime.timedelta(seconds=60): expected datetime.timedelta(0)",
            "all that was added:",
            "  parcel {'to': 'Ann'}",
            "  letter {'to': 'Bob', 'pages': 2} delay=0:01:00",
        ]

    async def test_an_empty_queue_is_called_empty(self, queue: Queue):
        with pytest.raises(AssertionError, match="nothing was added to 'letters'"):
            assert_added(queue, "letter")

    async def test_many_jobs_are_not_all_listed(self, queue: Queue):
        await queue.add_many(["letter"] * 25)
        with pytest.raises(AssertionError, match="and 5 more"):
            assert_added(queue, "parcel")

    async def test_nothing_at_all_was_added(self, queue: Queue):
        assert_not_added(queue)
        await queue.add("letter", 1)
        with pytest.raises(AssertionError, match="expected nothing to add a job in 'letters'; found 1") as caught:
            assert_not_added(queue)

        assert "letter 1" in str(caught.value)

    @pytest.mark.parametrize("wrong", [{"atempts": 3}, {"count": 0}, {"attempts": "many"}])
    async def test_what_cannot_be_meant_is_refused(self, queue: Queue, wrong: dict[str, object]):
        await queue.add("letter")
        with pytest.raises(InvalidInput):
            assert_added(queue, "letter", **wrong)  # type: ignore[arg-type]  # a mistake

    def test_what_is_no_queue_is_refused(self):
        with pytest.raises(InvalidInput, match="a queue or a task"):
            assert_added("letters")  # type: ignore[arg-type]  # a mistake


@dataclass
class Parcel:
    weight: int
    posted: datetime | None = None


@dataclass(eq=False)
class Stamp:
    cents: int


class Speed(Enum):
    SLOW = "slow"


NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
ID = UUID("12345678123456781234567812345678")


class TestTasks:
    async def test_a_task_is_asked_for_by_its_arguments(self, queue: Queue):
        @queue.task
        async def resize(path: str, width: int = 10) -> None: ...

        await queue.add("resize", {"path": "b.png", "width": 1})
        await resize.add("a.png", width=100)

        assert assert_added(resize, path="a.png").data == {"path": "a.png", "width": 100}
        assert_added(resize, path=str, count=2)
        assert_not_added(resize, path="c.png")
        assert [job.data["path"] for job in added(resize)] == ["b.png", "a.png"]
        with pytest.raises(InvalidInput, match="arguments as keywords"):
            assert_added(resize, "resize")

    @pytest.mark.parametrize(
        "expected",
        [
            {"at": NOON},
            {"at": NOON.astimezone(timezone(timedelta(hours=5)))},
            {"at": datetime},
            {"at": lambda at: at.year == 2030},
            {"at": "2030-01-01T12:00:00Z"},
            {"at": str},
            {"parcel": Parcel(2, NOON)},
            {"parcel": {"weight": 2}},
            {"parcel": {"posted": NOON, "weight": int}},
            {"parcel": lambda parcel: parcel.weight > 1},
            {"parcel": Parcel},
            {"stamp": Stamp(85)},
            {"number": ID},
            {"tags": {"b", "a", "c"}},
            {"speed": Speed.SLOW},
            {"speed": "slow"},
            {"route": [NOON, datetime]},
            {"pair": (1, NOON)},
            {"pair": [int, NOON]},
            {"by_day": {NOON.date(): Parcel(1)}},
            {"at": ANY, "number": ID},
        ],
    )
    async def test_an_argument_is_of_the_type_that_the_task_takes(self, queue: Queue, expected: dict[str, Any]):
        @queue.task
        async def deliver(
            at: datetime,
            parcel: Parcel,
            stamp: Stamp,
            *,
            number: UUID,
            tags: set[str],
            speed: Speed,
            route: list[datetime],
            pair: tuple[int, datetime],
            by_day: dict[date, Parcel],
        ) -> None: ...

        await deliver.add(
            NOON,
            Parcel(2, NOON),
            Stamp(85),
            number=ID,
            tags={"a", "b", "c"},
            speed=Speed.SLOW,
            route=[NOON, NOON],
            pair=(1, NOON),
            by_day={NOON.date(): Parcel(1)},
        )

        assert_added(deliver, **expected)
        with pytest.raises(AssertionError):
            assert_not_added(deliver, **expected)

    @pytest.mark.parametrize(
        "expected",
        [
            {"at": NOON + timedelta(seconds=1)},
            {"at": UUID},
            {"at": lambda at: at.year == 2031},
            {"parcel": Parcel(3)},
            {"parcel": {"weight": 3}},
            {"parcel": {"size": 1}},
            {"stamp": Stamp(86)},
        ],
    )
    async def test_another_value_of_that_type_is_not_it(self, queue: Queue, expected: dict[str, Any]):
        @queue.task
        async def deliver(at: datetime, parcel: Parcel, stamp: Stamp) -> None: ...

        await deliver.add(NOON, Parcel(2), Stamp(85))

        assert_not_added(deliver, **expected)
        with pytest.raises(AssertionError):
            assert_added(deliver, **expected)

    async def test_a_field_has_its_name_in_python_and_its_name_in_json(self, queue: Queue):
        class Sender(msgspec.Struct, rename="camel"):
            first_name: str

        class Receiver(pydantic.BaseModel):
            last_name: str = pydantic.Field(alias="lastName")

        async def deliver(sender, receiver) -> None: ...

        deliver.__annotations__ |= {"sender": Sender, "receiver": Receiver}
        task: Any = queue.task(deliver)
        await task.add(Sender("Ann"), Receiver(lastName="Bob"))

        assert_added(task, sender={"first_name": "Ann"}, receiver={"last_name": "Bob"})
        assert_added(task, sender={"firstName": "Ann"}, receiver={"lastName": "Bob"})
        assert_added(task, sender=Sender("Ann"), receiver=Receiver(lastName="Bob"))
        assert_not_added(task, sender={"first_name": "Bob"})
        assert_not_added(task, sender={"last_name": "Ann"})

    async def test_data_that_does_not_fit_the_task_is_compared_as_it_is(self, queue: Queue):
        @queue.task
        async def deliver(at: datetime) -> None: ...

        by_others = Queue(queue.name, store=queue.store)
        await by_others.add("deliver", {"at": "noon", "by": "Ann"})
        await by_others.add("deliver")

        assert_added(deliver, at="noon")
        assert_added(deliver, data=None, count=1)
        assert_not_added(deliver, at=NOON)

    async def test_options_are_those_of_using_and_not_of_the_decorator(self, queue: Queue):
        @queue.task(attempts=3, priority=1)
        async def resize(path: str) -> None: ...

        await resize.using(attempts=5).using(delay="1 minute").add("a.png")

        assert_added(resize, path="a.png")
        assert_added(resize.using(delay=60), path="a.png")
        assert_added(resize.using(delay=60).using(attempts=5))
        assert_added(resize.using(priority=1))
        assert_not_added(resize.using(attempts=3), path="a.png")
        assert_not_added(resize.using(delay=60), path="b.png")
        with pytest.raises(AssertionError, match=r"resize' in 'letters' with data {'path': 'a.png'}, delay 0; found 0"):
            assert_added(resize.using(delay=0), path="a.png")

    async def test_arguments_with_names_of_the_assertion_itself_are_given_as_data(self, queue: Queue):
        @queue.task
        async def count_up(name: str, count: int, data: Parcel, by: int = 1) -> None: ...

        await count_up.add("a", 3, Parcel(1), by=2)

        assert_added(count_up, data={"name": "a", "count": 3, "data": Parcel(1)}, by=2, count=1)
        assert_not_added(count_up, data={"count": 4}, by=2)
        assert_added(count_up, data=lambda arguments: arguments["data"].weight == 1)

    async def test_what_is_no_argument_of_the_task_is_refused(self, queue: Queue):
        @queue.task
        async def resize(path: str) -> None: ...

        with pytest.raises(InvalidInput, match=r"'pth' is no parameter of <Task 'resize' of 'letters'>.*\(path\)"):
            assert_added(resize, pth="a.png")
        with pytest.raises(InvalidInput, match=r"assert_added\(resize.using\(delay=...\), ...\)"):
            assert_not_added(resize, delay=60)
        with pytest.raises(InvalidInput, match="beside arguments"):
            assert_added(resize, data=dict, path="a.png")


class TestJobTypes:
    async def test_a_job_type_is_asked_for_by_data_of_its_type(self, queue: Queue):
        post = JobType("post", Parcel, attempts=3)
        await post.add(queue, Parcel(2, NOON), delay=60)
        await queue.add("letter", {"weight": 2})

        assert_added(queue, post, data=Parcel(2, NOON), delay=60)
        assert_added(queue, post, data={"posted": NOON})
        assert_added(queue, post, data=lambda parcel: parcel.weight == 2, count=1)
        assert_not_added(queue, post, data=Parcel(2))
        assert_not_added(queue, post, delay=0)
        assert [job.name for job in added(queue, post)] == ["post"]
