"""Job types, as producers use them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from ropeway import InvalidArguments, InvalidInput, InvalidOption, JobType, Queue, Worker
from tests.patience import PATIENCE


@dataclass
class Email:
    to: str
    copies: int = 1


class Receipt(pydantic.BaseModel):
    id: int


SEND = JobType("send-email", Email, Receipt, attempts=3)


async def test_data_is_stored_as_it_is(queue: Queue):
    job = await SEND.add(queue, Email("you"), priority=5)
    stored = await job.refresh()
    assert (stored.name, stored.data) == ("send-email", {"to": "you", "copies": 1})
    assert (stored.attempts, stored.priority) == (3, 5)


async def test_its_jobs_can_be_added_together(queue: Queue):
    jobs = await queue.add_many([SEND.call(Email("a")), SEND.call(Email("b"), id="b")])
    assert [job.data["to"] for job in jobs] == ["a", "b"]
    assert jobs[1].id == "b"


async def test_its_results_have_its_type(queue: Queue):
    job = await SEND.add(queue, Email("you"))
    [claimed] = await Worker(queue).claim()
    await claimed.complete({"id": 7})
    assert await job.result(timeout=PATIENCE) == Receipt(id=7)


async def test_without_a_type_a_result_is_what_is_stored(queue: Queue):
    job = await JobType("count", dict[str, int]).add(queue, {"a": 1})
    [claimed] = await Worker(queue).claim()
    await claimed.complete([1])
    assert await job.result(timeout=PATIENCE) == [1]


@pytest.mark.parametrize("data", [{"to": 5}, None, "you", Receipt(id=1), Email(5)])  # type: ignore[arg-type]  # so be it
async def test_other_data_is_refused_and_nothing_is_stored(queue: Queue, data: Any):
    with pytest.raises(InvalidArguments) as refused:
        await SEND.add(queue, data)
    assert (refused.value.name, refused.value.takes) == ("send-email", "Email")
    assert not any((await queue.counts()).values())


def test_a_wrong_option_is_an_error_where_it_stands():
    with pytest.raises(InvalidOption):
        JobType("send-email", Email, Receipt, atempts=3)  # type: ignore[call-overload]  # the point
    with pytest.raises(InvalidOption, match="single job"):
        JobType("send-email", Email, Receipt, id="a")
    with pytest.raises(InvalidOption):
        SEND.call(Email("you"), atempts=3)  # type: ignore[call-arg]  # the point


@pytest.mark.parametrize(("data", "result"), [(complex, int), (int, complex), ("Email", int)])
def test_a_type_that_json_cannot_hold_is_refused(data: Any, result: Any):
    with pytest.raises(InvalidInput, match="job type 'send-email' cannot be"):
        JobType("send-email", data, result)


@pytest.mark.parametrize("name", ["", "\n", 5])
def test_its_name_is_a_job_name(name: Any):
    with pytest.raises(InvalidInput):
        JobType(name, int)


async def test_jobs_of_a_type_are_added_without_a_loop(queue: Queue):
    job = await asyncio.to_thread(SEND.add_sync, queue, Email("you"), priority=5)
    [stored] = await queue.find("waiting")
    assert (stored.id, stored.data) == (job.id, {"to": "you", "copies": 1})


async def test_a_job_of_a_type_is_found_by_its_id(queue: Queue):
    added = await SEND.add(queue, Email("you"))
    [claimed] = await Worker(queue).claim()
    await claimed.complete({"id": 7})
    found = await SEND.get(queue, added.id)
    assert found is not None
    assert await found.result(timeout=PATIENCE) == Receipt(id=7)
    assert await asyncio.to_thread(SEND.get_sync, queue, "another") is None
