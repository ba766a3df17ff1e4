"""Results of steps: of the type that the function's annotation says, now and in every later attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

import pydantic
import pytest

from ropeway import Job, JobFailed, Queue, StepChanged, SyncJob, Worker, in_process
from ropeway.errors import InvalidPayload
from tests.patience import PATIENCE

from . import step_handlers
from .step_handlers import a_number, as_text
from .step_runs import run

T = TypeVar("T")
DAY: Final = date(2024, 2, 29)


@dataclass
class Row:
    day: date


async def a_row(day: date, text: str = "") -> Row:
    return Row(day)


class Rows:
    """An object that is called; its fields have annotations too."""

    text: str = ""

    async def __call__(self, day: date) -> Row:
        return Row(day)


@pytest.mark.parametrize(
    "function",
    [partial(a_row, text="a"), partial(partial(a_row), text="a"), Rows(), partial(Rows()), Rows().__call__],
    ids=["partial", "partial of a partial", "object", "partial of an object", "method"],
)
async def test_a_callable_keeps_the_type_of_its_function(queue: Queue, function: Callable[..., Any]):
    seen: list[Any] = []

    async def work(job: Job) -> None:
        seen.append(await job.step("one", function, date(2024, 2, 29)))
        if job.attempt == 1:
            raise RuntimeError("begin again")

    await run(queue, work, attempts=2)

    assert seen == [Row(date(2024, 2, 29))] * 2


class Corner(NamedTuple):
    x: int
    day: date


class Colour(Enum):
    RED = "red"


@dataclass
class Box(Generic[T]):
    content: T


class Person(pydantic.BaseModel):
    born: date


CLASSES: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "dataclass": (Row, {"day": DAY}, Row(DAY)),
    "partial": (partial(Row, DAY), {}, Row(DAY)),
    "named tuple": (Corner, {"x": 1, "day": DAY}, Corner(1, DAY)),
    "enumeration": (Colour, {"value": "red"}, Colour.RED),
    "generic": (Box[date], {"content": DAY}, Box(DAY)),
    "model": (Person, {"born": DAY}, Person(born=DAY)),
    "built in": (dict, {"rows": 3}, {"rows": 3}),
}


@pytest.mark.parametrize("case", CLASSES)
async def test_a_class_answers_its_objects(queue: Queue, case: str):
    function, arguments, expected = CLASSES[case]
    seen: list[Any] = []

    async def work(job: Job) -> None:
        seen.append(await job.step("one", function, **arguments))
        if job.attempt == 1:
            raise RuntimeError("begin again")

    await run(queue, work, attempts=2)

    assert seen == [expected] * 2


@pytest.mark.parametrize("wrap", [lambda function: function, in_process], ids=["thread", "process"])
async def test_a_class_answers_its_objects_in_threads_and_processes(queue: Queue, wrap: Any):
    assert await run(queue, wrap(step_handlers.make_a_point), attempts=2) == 12


async def test_a_class_whose_objects_are_called_by_await(queue: Queue):
    async def work(job: Job) -> int:
        return (await job.step("point", step_handlers.Point, 5)).x

    assert await run(queue, work) == 5


async def test_a_class_that_json_does_not_know_is_refused(queue: Queue):
    async def work(job: Job) -> str:
        with pytest.raises(InvalidPayload, match="is a Rows"):
            await job.step("one", Rows)
        with pytest.raises(InvalidPayload, match="is a date"):
            await job.step("two", list, [DAY])
        return "went on"

    assert await run(queue, work) == "went on"


async def test_arguments_of_the_names_of_options_are_given_by_a_partial(queue: Queue):
    async def fetch(url: str, *, timeout: float = 0, attempts: int = 0) -> Any:
        return [url, timeout, attempts]

    async def work(job: Job) -> Any:
        of_step = await job.step("step's", fetch, "a", timeout=60, attempts=2)
        of_function = await job.step("function's", partial(fetch, "a", timeout=5, attempts=3), timeout=60)
        return [of_step, of_function]

    assert await run(queue, work) == [["a", 0, 0], ["a", 5, 3]]


@pytest.mark.parametrize("place", ["loop", "thread"])
async def test_a_result_of_another_type_is_refused_and_not_stored(queue: Queue, place: str):
    refused = pytest.raises(InvalidPayload, match=r"result of step 'one' .* Expected `int`, got `str`")

    async def on_loop(job: Job) -> str:
        with refused:
            await job.step("one", a_number, "five")
        return "went on"

    def in_thread(job: SyncJob) -> str:
        with refused:
            job.step("one", a_number, "five")
        return "went on"

    async with Worker(queue, on_loop if place == "loop" else in_thread):
        job = await queue.add("work")
        assert await job.result(timeout=PATIENCE) == "went on"
    assert (await job.refresh()).steps == ()


async def other_type(job: Job) -> None:
    function: Any = a_number if job.attempt == 1 else as_text
    await job.step("one", function, 5)
    raise RuntimeError("begin again")


def other_type_in_thread(job: SyncJob) -> None:
    function: Any = a_number if job.attempt == 1 else as_text
    job.step("one", function, 5)
    raise RuntimeError("begin again")


@pytest.mark.parametrize(
    "handler",
    [other_type, other_type_in_thread, in_process(step_handlers.other_type)],
    ids=["loop", "thread", "process"],
)
async def test_a_stored_result_that_does_not_fit_any_more_says_so_and_is_not_retried(queue: Queue, handler: Any):
    async with Worker(queue, handler):
        job = await queue.add("work", attempts=5)
        with pytest.raises(
            JobFailed, match=r"StepChanged: the stored result of step 'one' .* give the step another name"
        ):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).attempts_made == 2


async def test_the_error_carries_its_facts(queue: Queue):
    async def work(job: Job) -> Any:
        if job.attempt == 1:
            await other_type(job)
        with pytest.raises(StepChanged) as refusal:
            await job.step("one", as_text, 5)
        return [refusal.value.step, refusal.value.job_id == job.id, refusal.value.problem]

    assert await run(queue, work, attempts=2) == ["one", True, "Expected `str`, got `int`"]
