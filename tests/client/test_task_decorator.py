"""What may be a task, and what is refused where it is decorated."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ropeway import InvalidTask, Job, ProcessJob, Queue, SyncJob
from ropeway.client.running import RunningJob
from ropeway.errors import InvalidName, InvalidOption

if TYPE_CHECKING:
    Later = int
    SyncLater = SyncJob


@pytest.fixture
def queue() -> Queue:
    return Queue("decorating", "memory://")


def plain(path: str, width: int = 1) -> str:
    return path * width


async def awaitable(path: str) -> str:
    return path


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Mailer:
    def send(self, to: str) -> str:
        return to

    async def __call__(self, to: str) -> str:
        return to


@pytest.mark.parametrize(
    ("function", "run_in"),
    [
        (plain, "thread"),
        (awaitable, "loop"),
        (wrapped(plain), "thread"),
        (Mailer().send, "thread"),
    ],
)
def test_a_function_with_a_name_is_a_task_of_that_name(queue: Queue, function: Any, run_in: str):
    task = queue.task(function)
    assert queue.tasks[function.__name__] is task
    assert task.signature.run_in == run_in


@pytest.mark.parametrize(
    ("function", "run_in"),
    [
        (lambda path: path, "thread"),
        (functools.partial(plain, width=2), "thread"),
        (functools.partial(awaitable), "loop"),
        (Mailer(), "loop"),
    ],
    ids=["lambda", "partial", "async partial", "object"],
)
async def test_what_has_no_name_needs_one(queue: Queue, function: Any, run_in: str):
    with pytest.raises(InvalidTask, match="name="):
        queue.task(function)
    task = queue.task(name="named")(function)
    assert task.signature.run_in == run_in
    assert (await task.add("a")).data.popitem()[1] == "a"


def test_a_name_of_ones_own(queue: Queue):
    task = queue.task(name="send-email")(plain)
    assert (task.name, list(queue.tasks)) == ("send-email", ["send-email"])
    with pytest.raises(InvalidName):
        queue.task(name="\n")(plain)


def test_two_tasks_of_one_name_are_refused(queue: Queue):
    queue.task(plain)
    with pytest.raises(InvalidTask, match=rf"{__name__}.plain.*name=") as refused:
        queue.task(name="plain")(awaitable)
    assert refused.value.task == "plain"
    assert queue.tasks["plain"].function is plain


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def variadic(*paths: str) -> None: ...


def with_keywords(**paths: str) -> None: ...


def with_complex(a: int, number: complex) -> None: ...


def answers_a_set_of_types() -> set[type]:
    return set()


def job_not_first(a: int, job: SyncJob) -> None: ...


def job_by_name(*, job: SyncJob) -> None: ...


def async_job_in_a_thread(job: Job) -> None: ...


async def sync_job_on_the_loop(job: SyncJob) -> None: ...


async def process_job_on_the_loop(job: ProcessJob) -> None: ...


async def job_of_no_kind(job: RunningJob) -> None: ...


def not_an_annotation(a: int.missing) -> None:  # type: ignore[name-defined]  # the point
    ...


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("resize", r"name='resize'"),
        (5, "it is not a function"),
        (Mailer, "a class"),
        (Mailer.send, "staticmethod"),
        (staticmethod(plain), "put @staticmethod above"),
        (classmethod(Mailer.send), "function or a staticmethod"),  # type: ignore[arg-type]  # the point
        (generator, "return a list"),
        (async_generator, "return a list"),
        (variadic, r"'\*paths'.*take a list"),
        (with_keywords, r"'\*\*paths'.*take a dict"),
        (with_complex, "parameter 'number' is complex"),
        (answers_a_set_of_types, "its result"),
        (job_not_first, "first parameter, not as 'job'"),
        (job_by_name, "by position"),
        (async_job_in_a_thread, "def a SyncJob"),
        (sync_job_on_the_loop, "async def is given a Job"),
        (process_job_on_the_loop, "async def is given a Job"),
        (job_of_no_kind, "asks for a RunningJob; async def is given a Job"),
        (not_an_annotation, "parameter 'a' cannot be read"),
    ],
)
def test_what_cannot_be_a_task_is_refused(queue: Queue, given: Any, problem: str):
    with pytest.raises(InvalidTask, match=problem):
        queue.task(given)
    assert not queue.tasks


def test_a_task_of_a_task_is_refused(queue: Queue):
    with pytest.raises(InvalidTask, match="decorate its function"):
        queue.task(queue.task(plain))


def test_a_method_is_refused_where_its_class_is_written(queue: Queue):
    with pytest.raises(InvalidTask, match="a method has no instance"):

        class Sender:
            @queue.task
            def send(self, to: str) -> None: ...

    class Static:
        @staticmethod
        @queue.task
        def send(to: str) -> str:
            return to

    assert Static.send("you") == "you"


def test_a_context_needs_a_parameter(queue: Queue):
    with pytest.raises(InvalidTask, match="it has none"):
        queue.task(context=True, name="none")(lambda: None)  # type: ignore[arg-type, misc]  # the point


@pytest.mark.parametrize("run_in", ["thread", "loop", 5])
def test_an_unknown_place_is_refused(queue: Queue, run_in: Any):
    with pytest.raises(InvalidOption, match='use "process"'):
        queue.task(run_in=run_in)


def of_later(value: Later, other: list[Later] | None = None) -> Later:
    return value


async def test_annotations_may_refer_to_what_is_defined_later(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    task = queue.task(of_later)
    monkeypatch.setitem(globals(), "Later", int)
    assert (await task.add(5, [6])).data == {"value": 5, "other": [6]}


async def test_an_annotation_that_is_never_defined_is_named(queue: Queue):
    task = queue.task(of_later)
    with pytest.raises(InvalidTask, match=r"'Later' is not defined.*parameter 'value'"):
        await task.add(5)


async def test_an_unresolved_context_is_found_out_later(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    def crawl(job: SyncLater, url: str) -> None: ...

    task = queue.task(crawl)
    monkeypatch.setitem(globals(), "SyncLater", SyncJob)
    assert (await task.add("a")).data == {"url": "a"}


@pytest.mark.parametrize(
    "options", [{"name": "letter"}, {"attempts": 3}, {"run_in": "process"}, {"context": True}, {"cron": "* * * * *"}]
)
def test_options_beside_the_function_are_refused_not_dropped(queue: Queue, options: Any):
    def send(to: str) -> str:
        return to

    with pytest.raises(InvalidTask, match=r"queue\.task\(name=\.\.\., \.\.\.\)\(send\)"):
        queue.task(send, **options)
