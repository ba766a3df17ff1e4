"""Tasks, as workers run them."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pydantic
import pytest

from ropeway import InvalidOption, InvalidTask, Job, JobFailed, JobType, Queue, SyncJob, Worker, in_process
from tests.client.fixtures import MakeQueue
from tests.patience import PATIENCE

from .watching import Ear, told


@dataclass
class Box:
    width: int
    since: datetime | None = None


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=2)


WHEN = datetime(2024, 5, 6, tzinfo=UTC)


async def result(worker: Worker, job: Any) -> Any:
    async with worker:
        return await (await job).result(timeout=PATIENCE)


async def failure(worker: Worker, job: Any) -> tuple[str, int]:
    """The reason of a failed job, and how many attempts it took."""
    async with worker:
        job = await job
        with pytest.raises(JobFailed) as failed:
            await job.result(timeout=PATIENCE)
    return failed.value.reason, (await job.refresh()).attempts_made


def by_others(queue: Queue) -> Queue:
    """The same queue in a program that does not know its tasks, and so checks no data."""
    return Queue(queue.name, store=queue.store)


async def test_an_async_task_runs_on_the_loop(queue: Queue):
    @queue.task
    async def where(box: Box) -> tuple[Box, int]:
        return box, threading.get_ident()

    assert await result(Worker(queue), where.add(Box(3, WHEN))) == (Box(3, WHEN), threading.get_ident())


async def test_a_def_task_runs_in_a_thread(queue: Queue):
    @queue.task
    def where(box: Box) -> tuple[Box, bool]:
        return box, threading.current_thread() is threading.main_thread()

    assert await result(Worker(queue), where.add(Box(3, WHEN))) == (Box(3, WHEN), False)


async def test_a_pydantic_model_goes_there_and_back(queue: Queue):
    @queue.task
    async def greet(people: list[Person]) -> dict[str, Person]:
        return {person.name: person for person in people}

    ada = Person(name="Ada")
    assert await result(Worker(queue), greet.add([ada])) == {"Ada": ada}


async def test_an_async_task_is_given_its_job(queue: Queue):
    @queue.task
    async def report(job: Job, title: str, /, copies: int = 2, *, loud: bool) -> list[Any]:
        await job.progress(50)
        return [job.name, job.attempt, title, copies, loud, job.data]

    data = {"title": "a", "loud": True}
    assert await result(Worker(queue), report.add("a", loud=True)) == ["report", 1, "a", 2, True, data]


async def test_a_def_task_is_given_its_job(queue: Queue):
    @queue.task
    def report(job: SyncJob, title: str) -> list[Any]:
        job.progress(50)
        return [job.name, title]

    job = await report.add("a")
    async with Worker(queue):
        assert await job.result(timeout=PATIENCE) == ["report", "a"]
    assert (await job.refresh()).progress == 50


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_task_with_context_is_given_its_job_whatever_the_annotation(queue: Queue, is_async: bool):
    async def on_loop(job, number: int) -> list[Any]:
        return [type(job).__name__, number]

    def in_thread(job, number: int) -> list[Any]:
        return [type(job).__name__, number]

    task: Any = queue.task(context=True)(on_loop) if is_async else queue.task(context=True)(in_thread)
    assert await result(Worker(queue), task.add(3)) == ["Job" if is_async else "SyncJob", 3]


async def test_defaults_are_those_of_the_code_that_runs_the_job(queue: Queue, make_queue: MakeQueue):
    @queue.task
    async def resize(path: str, width: int = 1) -> int:
        return width

    job = await resize.add("a")
    newer = make_queue()

    @newer.task(name="resize")
    async def resize_now(path: str, width: int = 2, colors: tuple[str, ...] = ()) -> int:
        return width

    async with Worker(newer):
        assert await job.result(timeout=PATIENCE) == 2


async def test_a_mutable_default_is_the_functions_own(queue: Queue):
    seen: list[int] = []

    @queue.task
    async def collect(number: int, into: list[int] = seen) -> None:
        into.append(number)

    await result(Worker(queue), collect.add(1))
    await result(Worker(queue), collect.add(2))
    assert seen == [1, 2]


async def test_a_task_without_parameters_runs_jobs_without_data(queue: Queue):
    @queue.task
    async def ping(times: int = 3) -> int:
        return times

    assert await result(Worker(queue), ping.add()) == 3
    assert await result(Worker(queue), queue.add("ping")) == 3


async def test_plain_adds_reach_a_task(queue: Queue):
    @queue.task
    async def resize(box: Box) -> int:
        return box.width

    assert await result(Worker(queue), queue.add("resize", {"box": {"width": 5}})) == 5


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"box": {"width": "wide"}}, r"Expected `int`, got `str` - at `$.box.width`"),
        ({}, "Object missing required field `box`"),
        (None, "Object missing required field `box`"),
        ({"box": {"width": 1}, "extra": 1}, "Object contains unknown field `extra`"),
        ([1], "Expected `object | null`, got `array`"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_data_that_does_not_fit_fails_at_once(queue: Queue, data: Any, problem: str, is_async: bool):
    called = []

    async def on_loop(box: Box) -> None:
        called.append(box)

    def in_thread(box: Box) -> None:
        called.append(box)

    queue.task(name="resize")(on_loop if is_async else in_thread)
    added = by_others(queue).add("resize", data, attempts=5)
    assert await failure(Worker(queue), added) == (f"invalid payload: {problem}", 1)
    assert not called


async def test_a_model_that_does_not_validate_fails_at_once(queue: Queue):
    @queue.task
    async def greet(person: Person) -> None: ...

    added = by_others(queue).add("greet", {"person": {"name": "A"}}, attempts=5)
    reason, attempts = await failure(Worker(queue), added)
    assert reason.startswith("invalid payload: ")
    assert "at least 2 characters" in reason
    assert attempts == 1


@pytest.mark.every_store
async def test_invalid_jobs_can_be_removed(queue: Queue):
    @queue.task
    async def resize(box: Box) -> None: ...

    async with Worker(queue, on_invalid="remove"):
        job = await by_others(queue).add("resize", {}, attempts=5)
        await told(queue, "removed", job)
        with pytest.raises(JobFailed, match="invalid payload"):
            await job.result(timeout=PATIENCE)
    assert not any((await queue.counts()).values())


async def test_other_failures_are_kept_when_invalid_jobs_are_removed(queue: Queue):
    @queue.task
    async def resize(box: Box) -> None:
        raise ValueError("bad luck")

    assert await failure(Worker(queue, on_invalid="remove"), resize.add(Box(1))) == ("ValueError: bad luck", 1)
    assert (await queue.counts())["failed"] == 1


def test_an_unknown_rule_for_invalid_jobs_is_refused(queue: Queue):
    with pytest.raises(InvalidOption, match='use "fail" or "remove"'):
        Worker(queue, on_invalid="ignore")  # type: ignore[arg-type]  # the point


async def test_a_task_is_retried_like_any_handler(queue: Queue):
    tries = []

    @queue.task(attempts=3)
    async def flaky(number: int) -> int:
        tries.append(number)
        if len(tries) < 3:
            raise ValueError("bad luck")
        return number

    assert await result(Worker(queue), flaky.add(5)) == 5
    assert tries == [5, 5, 5]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_result_that_cannot_be_stored_is_not_retried(queue: Queue, is_async: bool):
    async def on_loop() -> list[int]:
        return [object()]  # type: ignore[list-item]  # the point

    def in_thread() -> list[int]:
        return [object()]  # type: ignore[list-item]  # the point

    queue.task(name="odd", attempts=5)(on_loop if is_async else in_thread)
    reason, attempts = await failure(Worker(queue), queue.tasks["odd"].add())
    assert reason.startswith("InvalidPayload: result cannot be stored as JSON")
    assert attempts == 1


async def test_the_result_of_a_def_task_is_made_json_in_its_thread(queue: Queue):
    threads: list[int] = []

    class Watched(Person):
        @pydantic.model_serializer(mode="wrap")
        def watch(self, write: pydantic.SerializerFunctionWrapHandler) -> Any:
            threads.append(threading.get_ident())
            return write(self)

    def find(name: str) -> Person:
        threads.append(threading.get_ident())
        return Watched(name=name)

    queue.task(find)
    assert await result(Worker(queue), queue.tasks["find"].add("Ann")) == Person(name="Ann")
    assert len(threads) == 2
    assert threads[0] == threads[1] != threading.get_ident()


async def test_a_def_task_may_answer_a_coroutine(queue: Queue):
    async def later(width: int) -> Box:
        return Box(width)

    @queue.task
    def resize(width: int) -> Coroutine[Any, Any, Box]:
        return later(width)

    assert await result(Worker(queue), resize.add(3)) == Box(3)


async def test_a_partial_and_an_object_run_as_tasks(queue: Queue):
    async def scale(factor: int, width: int) -> Box:
        return Box(factor * width)

    class Doubling:
        def __call__(self, width: int) -> Box:
            return Box(2 * width)

    tripled: Any = queue.task(name="triple")(functools.partial(scale, 3))
    doubled: Any = queue.task(name="double")(Doubling())
    assert await result(Worker(queue), tripled.add(5)) == Box(15)
    assert await result(Worker(queue), doubled.add(5)) == Box(10)


async def test_tasks_and_handlers_share_a_worker(queue: Queue):
    @queue.task
    async def resize(width: int) -> int:
        return width

    async def other(job: Job) -> str:
        return f"other {job.name}"

    async def named(job: Job) -> str:
        return f"named {job.name}"

    async with Worker(queue, {"named": named, "*": other}):
        jobs = [await resize.add(3), await queue.add("named"), await queue.add("unknown")]
        assert [await job.result(timeout=PATIENCE) for job in jobs] == [3, "named named", "other unknown"]
    async with Worker(queue, other):
        jobs = [await resize.add(3), await queue.add("unknown")]
        assert [await job.result(timeout=PATIENCE) for job in jobs] == [3, "other unknown"]


async def test_jobs_without_a_task_are_left_alone(queue: Queue):
    @queue.task
    async def ping() -> None: ...

    async with Worker(queue) as worker:
        ear = Ear(worker, "unhandled")
        other = await queue.add("unknown")
        await (await ping.add()).result(timeout=PATIENCE)
        assert await other.state() == "waiting"
        assert (await queue.workers())[0].handlers == {queue.name: ("ping",)}
        assert ear.names in ([], ["unhandled"])


async def test_each_queue_has_its_own_tasks(make_queue: MakeQueue):
    first, second = make_queue("first"), make_queue("second")

    @first.task(name="send")
    async def send_first(a: int) -> str:
        return f"first {a}"

    @second.task(name="send")
    async def send_second(b: int) -> str:
        return f"second {b}"

    async with Worker([first, second]):
        jobs = [await send_first.add(1), await send_second.add(2)]
        assert [await job.result(timeout=PATIENCE) for job in jobs] == ["first 1", "second 2"]


async def test_a_name_of_a_task_and_of_a_handler_is_refused(queue: Queue):
    @queue.task
    async def resize(width: int) -> None: ...

    async def handler(job: Job) -> None: ...

    with pytest.raises(InvalidOption, match="has a task of that name"):
        async with Worker(queue, {"resize": handler}):
            pass
    async with Worker(queue) as worker:
        with pytest.raises(InvalidOption, match="has a task of that name"):
            worker.handler("resize")(handler)


async def test_a_task_may_stand_in_a_mapping_also_under_an_old_name(queue: Queue):
    @queue.task
    async def resize(width: int) -> int:
        return width

    async with Worker(queue, {"resize": resize, "scale": resize}):
        old = await queue.add("scale", {"width": 4})
        assert [await old.result(timeout=PATIENCE), await (await resize.add(5)).result(timeout=PATIENCE)] == [4, 5]


def test_a_task_is_no_handler_for_everything(queue: Queue):
    @queue.task
    async def resize(width: int) -> None: ...

    with pytest.raises(InvalidOption, match="by itself"):
        Worker(queue, resize)
    with pytest.raises(InvalidOption, match='run_in="process"'):
        in_process(resize)  # type: ignore[arg-type]  # the point


async def test_a_queue_with_nothing_to_run_is_refused(make_queue: MakeQueue):
    full, empty = make_queue("full"), make_queue("empty")

    @full.task
    async def ping() -> None: ...

    with pytest.raises(InvalidOption, match="'empty'"):
        await Worker([full, empty]).run()


async def unresolved(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point


async def test_a_task_that_cannot_be_run_stops_the_worker_before_it_starts(queue: Queue):
    queue.task(unresolved)
    with pytest.raises(InvalidTask, match="Missing"):
        await Worker(queue).run()


@pytest.mark.every_store
async def test_a_cancel_reaches_a_task(queue: Queue):
    began, ended = asyncio.Event(), asyncio.Event()

    @queue.task
    async def wait(seconds: float) -> None:
        began.set()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            ended.set()
            raise

    async with Worker(queue):
        job = await wait.add(3600)
        await asyncio.wait_for(began.wait(), PATIENCE)
        await job.cancel()
        await asyncio.wait_for(ended.wait(), PATIENCE)


SEND = JobType("send", Box, Person)


@pytest.mark.parametrize("form", ["data", "job and data", "thread", "job and data in a thread"])
async def test_a_handler_of_a_job_type_takes_its_data(queue: Queue, form: str):
    worker = Worker(queue)

    async def data(box: Box) -> Person:
        return Person(name=f"{box!r}")

    async def job_and_data(job: Job, box: Box) -> Person:
        await job.progress(50)
        return Person(name=f"{box!r}")

    def thread(box: Box) -> Person:
        return Person(name=f"{box!r}")

    def job_and_data_in_a_thread(job: SyncJob, box: Box) -> Person:
        job.progress(50)
        return Person(name=f"{box!r}")

    function: Any = locals()[form.replace(" ", "_")]
    assert worker.handler(SEND)(function) is function
    assert await result(worker, SEND.add(queue, Box(3, WHEN))) == Person(name=f"{Box(3, WHEN)!r}")


async def test_data_that_is_not_of_the_job_type_fails_at_once(queue: Queue):
    worker = Worker(queue)

    @worker.handler(SEND)
    async def send(box: Box) -> Person:
        return Person(name="Ada")

    reason, attempts = await failure(worker, queue.add("send", {"width": "wide"}, attempts=3))
    assert (reason, attempts) == ("invalid payload: Expected `int`, got `str` - at `$.width`", 1)


@pytest.mark.parametrize("function", [lambda: None, lambda a, b, c: None, 5, int, in_process(print)])
def test_a_handler_that_cannot_take_a_job_type_is_refused(queue: Queue, function: Any):
    with pytest.raises(InvalidOption, match="handler"):
        Worker(queue).handler(SEND)(function)


@pytest.mark.every_store
async def test_a_worker_tells_others_which_options_its_tasks_give(make_queue: MakeQueue):
    queue = make_queue()

    @queue.task(attempts=3, timeout=5)
    async def resize(path: str) -> None: ...

    @queue.task
    async def show(path: str) -> None: ...

    async with Worker(queue):
        [worker] = await queue.workers()

    assert worker.task_options == {queue.name: {"resize": ("attempts", "timeout")}}
