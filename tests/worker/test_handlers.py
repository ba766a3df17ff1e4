"""Which function runs which job, and where."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import threading
from typing import Any

import pytest

from ropeway import Job, JobType, ProcessJob, Queue, SyncJob, Worker, in_process
from ropeway.errors import InvalidInput, InvalidName, InvalidOption
from ropeway.worker.feeds import QueueFeed
from tests.patience import PATIENCE

from .watching import Ear, Gate, told


async def result(queue: Queue, handler: Any, data: Any = None, **options: Any) -> Any:
    async with Worker(queue, handler):
        job = await queue.add("send", data, **options)
        return await job.result(timeout=PATIENCE)


async def test_an_async_handler_runs_on_the_loop(queue: Queue):
    async def handle(job: Job) -> Any:
        return [threading.get_ident(), job.data, job.name, job.attempt]

    assert await result(queue, handle, {"a": 1}) == [threading.get_ident(), {"a": 1}, "send", 1]


async def test_a_def_handler_runs_in_a_thread(queue: Queue):
    def handle(job: SyncJob) -> Any:
        return [threading.get_ident() == threading.main_thread().ident, job.data, job.name, job.attempt]

    assert await result(queue, handle, {"a": 1}) == [False, {"a": 1}, "send", 1]


async def test_def_handlers_run_beside_each_other(queue: Queue):
    together = threading.Barrier(3)
    async with Worker(queue, lambda _: together.wait(PATIENCE), concurrency=3):
        jobs = await queue.add_many(["send"] * 3)
        assert sorted([await job.result(timeout=PATIENCE) for job in jobs]) == [0, 1, 2]


class Greeter:
    async def greet(self, job: Job) -> str:
        return f"hello {job.data}"

    async def __call__(self, job: Job) -> str:
        return await self.greet(job)


async def _greet(greeting: str, job: Job) -> str:
    await job.progress(50)
    return f"{greeting} {job.data}"


@pytest.mark.parametrize(
    "handler", [Greeter().greet, Greeter(), functools.partial(_greet, "hello")], ids=["method", "object", "partial"]
)
async def test_whatever_is_async_when_called_runs_on_the_loop(queue: Queue, handler: Any):
    assert await result(queue, handler, "you") == "hello you"


async def test_a_plain_function_may_answer_a_coroutine(queue: Queue):
    assert await result(queue, lambda job: _greet("hello", job), "you") == "hello you"


async def test_jobs_go_to_the_handler_of_their_name(queue: Queue):
    async def send(_: Job) -> str:
        return "sent"

    def post(_: SyncJob) -> str:
        return "posted"

    async def other(job: Job) -> str:
        return f"{job.name}?"

    async with Worker(queue, {"send": send, "post": post, "*": other}):
        jobs = await queue.add_many(["send", "post", "os.system", "__import__"])
        assert [await job.result(timeout=PATIENCE) for job in jobs] == ["sent", "posted", "os.system?", "__import__?"]


async def test_handlers_can_be_registered_by_decorator(queue: Queue):
    worker = Worker(queue)

    @worker.handler("send")
    async def send(_: Job) -> str:
        return "sent"

    async with worker:
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "sent"


async def test_a_handler_registered_later_finds_the_jobs_that_waited_for_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.worker.dispatcher.SAFETY_POLL", 3_600)
    worker = Worker(queue, {"send": Gate()})
    ear = Ear(worker, "unhandled")
    job = await queue.add("post")
    async with worker:
        await ear.hear("unhandled")

        @worker.handler("post")
        async def post(_: Job) -> str:
            return "posted"

        assert await job.result(timeout=PATIENCE) == "posted"


@pytest.mark.every_store
async def test_a_handler_registered_just_when_the_queue_ran_dry_finds_its_jobs(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
):
    async def post(_: Job) -> str:
        return "posted"

    def run_dry_and_register(feed: QueueFeed, again_in: float | None) -> None:
        monkeypatch.setattr(QueueFeed, "run_dry", run_dry)
        # Before whoever waits for a dry feed has its turn.
        asyncio.get_running_loop().call_soon(lambda: worker.handler("post")(post))
        run_dry(feed, again_in)

    run_dry = QueueFeed.run_dry
    monkeypatch.setattr(QueueFeed, "run_dry", run_dry_and_register)
    # No safety poll shall find what a wake should have told.
    monkeypatch.setattr("ropeway.worker.dispatcher.SAFETY_POLL", 3_600)
    worker = Worker(queue, {"send": Gate()})
    job = await queue.add("post")
    async with worker:
        assert await job.result(timeout=PATIENCE) == "posted"


async def test_a_name_without_handler_is_left_and_reported_once(queue: Queue):
    async def handle(_: Job) -> None:
        pass

    worker = Worker(queue, {"send": handle})
    ear = Ear(worker, "unhandled")
    left = await queue.add_many(["post", "post", "fax"])
    async with worker:
        sent = await queue.add("send")
        await sent.result(timeout=PATIENCE)
        await ear.hear("unhandled", 2)
    assert sorted(event.data["job_name"] for event in ear.events) == ["fax", "post"]
    assert {event.data["queue"] for event in ear.events} == {queue.name}
    assert [await job.state() for job in left] == ["waiting"] * 3
    assert [(await job.refresh()).attempts_started for job in left] == [0] * 3


@pytest.mark.every_store
async def test_a_left_job_is_run_by_a_worker_that_has_its_handler(queue: Queue):
    async def handle(job: Job) -> str:
        return job.name

    async with Worker(queue, {"send": handle}), Worker(queue, {"post": handle}):
        jobs = await queue.add_many(["post", "send"])
        assert [await job.result(timeout=PATIENCE) for job in jobs] == ["post", "send"]


@pytest.mark.parametrize("handler", [5, "send", {"send": None}, {"send": "os.system"}, [print]])
def test_what_is_no_function_is_no_handler(handler: Any):
    with pytest.raises(InvalidOption, match="handler"):
        Worker(Queue("letters", "memory://"), handler)


async def _with_a_sync_job(job: SyncJob) -> None: ...


async def _with_data_beside_a_sync_job(job: SyncJob, data: int) -> None: ...


async def _with_a_process_job(job: ProcessJob) -> None: ...


def _with_an_async_job(job: Job) -> None: ...


class _WithASyncJob:
    async def __call__(self, job: SyncJob) -> None: ...


class _Stranger:
    """Its annotation cannot be read before the test's own module has one of that name."""

    async def handle(self, job: Unheard) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is the point


@pytest.mark.parametrize(
    ("handler", "asked"),
    [
        (_with_a_sync_job, "SyncJob"),
        (_with_a_process_job, "ProcessJob"),
        (_with_an_async_job, "Job"),
        (_WithASyncJob(), "SyncJob"),
        (functools.partial(_with_a_sync_job), "SyncJob"),
        (in_process(_with_an_async_job), "Job"),  # type: ignore[arg-type]  # and by type checkers
    ],
)
def test_a_handler_that_asks_for_another_kind_of_job_is_refused(handler: Any, asked: str):
    with pytest.raises(InvalidOption, match=f"for 'send' asks for a {asked}; async def is given a Job, def a SyncJob"):
        Worker(Queue("letters", "memory://"), {"send": handler})


def test_so_is_one_of_a_job_type():
    worker = Worker(Queue("letters", "memory://"))
    with pytest.raises(InvalidOption, match="for 'send' asks for a SyncJob"):
        worker.handler(JobType("send", int, None))(_with_data_beside_a_sync_job)  # type: ignore[arg-type]  # the same


def _with_either(job: Job | SyncJob) -> None: ...


async def _with_more(job: Job, more: int) -> None: ...


@functools.wraps(_with_more)
async def _gives_the_rest(job: Job) -> None: ...


@pytest.mark.parametrize("handler", [_gives_the_rest, _with_either, _Stranger().handle, lambda job: None, print])
def test_what_a_handler_does_not_say_is_no_mistake(handler: Any):
    Worker(Queue("letters", "memory://"), {"send": handler})


def _of_two(to: str, subject: str) -> None: ...
async def _of_none() -> None: ...
def _by_keyword(*, job: Job) -> None: ...


@pytest.mark.parametrize(
    "handler",
    [_of_two, _of_none, _by_keyword, in_process(_of_two)],  # type: ignore[arg-type]  # and by type checkers
)
def test_a_handler_that_cannot_be_called_with_a_job_alone_is_refused(handler: Any):
    with pytest.raises(InvalidOption, match=r"for 'send' takes \(.*@queue\.task"):
        Worker(Queue("letters", "memory://"), {"send": handler})


def _generator(job: SyncJob) -> Any:
    yield job.data


async def _async_generator(job: Job) -> Any:
    yield job.data


@pytest.mark.parametrize("handler", [_generator, _async_generator])
def test_a_generator_is_no_handler(handler: Any):
    with pytest.raises(InvalidOption, match="is a generator"):
        Worker(Queue("letters", "memory://"), handler)


@pytest.mark.parametrize("name", [print, "", "a\tb", 5], ids=str)
def test_what_is_no_name_registers_nothing(name: Any):
    """Where it is said, since `@worker.handler` without parentheses is never called a second time."""
    with pytest.raises(InvalidInput, match="name"):
        Worker(Queue("letters", "memory://")).handler(name)


def test_a_handler_needs_a_name_that_a_job_could_have():
    with pytest.raises(InvalidName):
        Worker(Queue("letters", "memory://"), {"": print})


async def test_a_worker_without_handlers_does_not_start(queue: Queue):
    with pytest.raises(InvalidOption, match="missing"):
        await Worker(queue).run()
    with pytest.raises(InvalidOption, match="missing"):
        await Worker(queue, {}).run()


colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


async def test_a_context_variable_of_one_job_is_not_seen_by_another(queue: Queue):
    async def handle(job: Job) -> str:
        before = colour.get()
        colour.set(job.data)
        await asyncio.sleep(0)
        assert colour.get() == job.data
        return before

    def handle_in_thread(job: SyncJob) -> str:
        before = colour.get()
        colour.set(job.data)
        return before

    async with Worker(queue, {"send": handle, "post": handle_in_thread}, concurrency=1):
        jobs = await queue.add_many([("send", "red"), ("post", "green"), ("send", "blue"), ("post", "black")])
        assert [await job.result(timeout=PATIENCE) for job in jobs] == ["none"] * 4
    assert colour.get() == "none"


async def test_a_handler_sees_the_context_in_which_the_worker_was_started(queue: Queue):
    async def handle(_: Job) -> str:
        return colour.get()

    async def start() -> Any:
        colour.set("outer")
        return await result(queue, handle)

    assert await asyncio.create_task(start()) == "outer"


async def test_tasks_of_a_handler_share_its_context(queue: Queue):
    async def child() -> str:
        return colour.get()

    async def handle(_: Job) -> str:
        colour.set("mine")
        return await asyncio.create_task(child())

    assert await result(queue, handle) == "mine"


async def test_timeouts_and_task_groups_work_inside_handlers(queue: Queue):
    async def handle(job: Job) -> Any:
        heard = []
        for _ in range(2):
            try:
                async with asyncio.timeout(0.01):
                    await asyncio.Event().wait()
            except TimeoutError:
                heard.append("timeout")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_fail())
                await asyncio.Event().wait()
        except* ValueError:
            heard.append("group")
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        except TimeoutError:
            heard.append("wait_for")
        return heard

    async with Worker(queue, handle, concurrency=1):
        for _ in range(2):
            job = await queue.add("send")
            assert await job.result(timeout=PATIENCE) == ["timeout", "timeout", "group", "wait_for"]


async def _fail() -> None:
    raise ValueError("on purpose")


@pytest.mark.every_store
async def test_a_handler_can_add_jobs_and_wait_for_them(queue: Queue):
    async def handle(job: Job) -> Any:
        if job.data == 0:
            return 1
        inner = await job.queue.add("send", job.data - 1)
        return 1 + await inner.result(timeout=PATIENCE)

    async with Worker(queue, handle, concurrency=4):
        assert await (await queue.add("send", 3)).result(timeout=PATIENCE) == 4


@pytest.mark.every_store
async def test_a_worker_serves_jobs_that_waited_before_it_started(queue: Queue):
    jobs = await queue.add_many(("send", n) for n in range(30))

    async def handle(job: Job) -> Any:
        return -job.data

    async with Worker(queue, handle):
        assert [await job.result(timeout=PATIENCE) for job in jobs] == [-n for n in range(30)]


@pytest.mark.every_store
async def test_a_delayed_job_runs_when_it_is_due_and_not_before(queue: Queue):
    async def handle(_: Job) -> str:
        return "done"

    async with Worker(queue, handle):
        job = await queue.add("send", delay=0.15)
        assert await job.result(timeout=PATIENCE) == "done"
    added, started = [(await told(queue, name, job)).at for name in ("added", "active")]
    assert 150 <= started - added < 2_000


async def test_a_misspelt_name_is_told_with_the_one_that_may_be_meant(queue: Queue, caplog: pytest.LogCaptureFixture):
    worker = Worker(queue, {"send_email": Gate()})
    ear = Ear(worker, "unhandled")
    await queue.add("send-email")
    async with worker:
        await ear.hear("unhandled")

    assert "this worker has no handler for them, but one for 'send_email'" in caplog.text


async def test_at_debug_the_log_tells_of_every_job(queue: Queue, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG, "ropeway")
    async with Worker(queue, lambda _: None):
        job = await queue.add("send")
        await job.result(timeout=PATIENCE)
    told = [message for message in caplog.messages if job.id in message]

    begins, completed = told
    assert begins == f"send begins attempt 1 (letters {job.id})"
    assert completed.startswith("send completed in ")
    assert caplog.messages[-1].endswith("has stopped")
