"""What was added to a queue is found, and what was not is explained."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple
from unittest.mock import ANY

import pytest

from ropeway import Backoff, InvalidInput, Job, Keep, Queue
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
        with pytest.raises(AssertionError, match="expected that nobody adds a job in 'letters'; found 1") as caught:
            assert_not_added(queue)

        assert "letter 1" in str(caught.value)

    @pytest.mark.parametrize("wrong", [{"atempts": 3}, {"count": 0}, {"attempts": "many"}])
    async def test_what_cannot_be_meant_is_refused(self, queue: Queue, wrong: dict[str, object]):
        await queue.add("letter")
        with pytest.raises(InvalidInput):
            assert_added(queue, "letter", **wrong)  # type: ignore[arg-type]  # a mistake

    async def test_a_task_is_asked_for_by_its_arguments(self, queue: Queue):
        class Resize(NamedTuple):
            queue: Queue
            name: str = "resize"

        await queue.add("resize", {"path": "a.png", "width": 100})

        assert_added(Resize(queue), path="a.png")
        assert_not_added(Resize(queue), path="b.png")
        with pytest.raises(InvalidInput, match="arguments as keywords"):
            assert_added(Resize(queue), "resize")
        with pytest.raises(InvalidInput, match="a queue or a task"):
            assert_added("letters")  # type: ignore[arg-type]  # a mistake
