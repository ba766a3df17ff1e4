"""Tasks, as those who add their jobs use them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from ropeway import (
    DuplicateJob,
    InvalidArguments,
    InvalidInput,
    InvalidOption,
    Job,
    JobFailed,
    Queue,
    UnexpectedResult,
    Worker,
)
from ropeway.errors import InvalidPayload
from tests.patience import PATIENCE

from .fixtures import MakeQueue


@dataclass
class Box:
    width: int
    since: datetime | None = None


WHEN = datetime(2024, 5, 6, tzinfo=UTC)


async def is_empty(queue: Queue) -> bool:
    return not any((await queue.counts()).values())


async def complete_next(queue: Queue, result: Any) -> None:
    [claimed] = await Worker(queue).claim()
    await claimed.complete(result)


def resizing(queue: Queue) -> Any:
    @queue.task
    async def resize(path: str, /, width: int = 800, *, box: Box | None = None) -> Box:
        return box or Box(width)

    return resize


async def test_a_job_carries_its_arguments_by_name(queue: Queue):
    job = await resizing(queue).add("a.png", 100, box=Box(3, WHEN))
    data = {"path": "a.png", "width": 100, "box": {"width": 3, "since": "2024-05-06T00:00:00Z"}}
    assert job.data == data
    stored = await job.refresh()
    assert (stored.name, stored.data, stored.state) == ("resize", data, "waiting")


async def test_defaults_are_not_stored(queue: Queue):
    assert (await resizing(queue).add("a.png")).data == {"path": "a.png"}


async def test_calling_a_task_runs_its_function_and_adds_nothing(queue: Queue):
    assert await resizing(queue)("a.png", 3) == Box(3)
    assert await is_empty(queue)


def test_a_task_looks_like_its_function(queue: Queue):
    @queue.task
    def shrink(path: str) -> int:
        """Makes it smaller."""
        return len(path)

    assert (shrink.__name__, shrink.__doc__, shrink.__module__) == ("shrink", "Makes it smaller.", __name__)
    assert shrink("abc") == 3


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "missing a required argument: 'path'"),
        (("a", 1, 2), {}, "too many positional arguments"),
        (("a",), {"widht": 1}, "unexpected keyword argument 'widht'"),
        (("a", 1), {"width": 1}, "multiple values for argument 'width'"),
        (("a", "wide"), {}, r"Expected `int`, got `str` - at `\$.width`"),
        ((5,), {}, r"Expected `str`, got `int` - at `\$.path`"),
        (("a",), {"box": Box("wide")}, r"\$.box.width"),  # type: ignore[arg-type]  # the point
        (("a",), {"box": object()}, "box"),
        (("a",), {"delay": 60}, r"resize.using\(delay=...\)"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_and_nothing_is_stored(
    queue: Queue, args: Any, kwargs: Any, problem: str
):
    with pytest.raises(InvalidInput, match=problem):
        await resizing(queue).add(*args, **kwargs)
    assert await is_empty(queue)


async def test_the_error_says_what_the_task_takes(queue: Queue):
    with pytest.raises(InvalidArguments) as refused:
        await resizing(queue).add()
    assert refused.value.name == "resize"
    assert refused.value.takes == "(path, /, width=800, *, box=None)"


async def test_what_has_no_annotation_must_be_json(queue: Queue):
    @queue.task
    def keep(value, other: Any = None):
        return value

    assert (await keep.add({"a": [1]})).data == {"value": {"a": [1]}}
    with pytest.raises(InvalidPayload, match=r"\$.other is a datetime"):
        await keep.add(1, other=WHEN)


async def test_options_go_from_queue_to_task_to_call(make_queue: MakeQueue):
    queue = make_queue(attempts=2, priority=2)

    @queue.task(priority=3, timeout=60)
    async def ping() -> None: ...

    assert await options_of(await ping.add()) == (2, 3)
    assert await options_of(await ping.using(priority=4).add()) == (2, 4)
    assert await options_of(await ping.using(priority=4).using(attempts=5).add()) == (5, 4)
    assert await options_of(await ping.add()) == (2, 3)


async def options_of(job: Any) -> tuple[int, int]:
    stored = await job.refresh()
    return stored.attempts, stored.priority


async def test_jobs_that_are_added_by_the_name_of_a_task_have_its_options(make_queue: MakeQueue):
    queue = make_queue(attempts=2, priority=2)

    @queue.task(priority=3)
    async def ship(parcel: int) -> None: ...

    assert await options_of(await queue.add("ship", {"parcel": 1})) == (2, 3)
    assert await options_of(await queue.add("ship", {"parcel": 1}, attempts=5)) == (5, 3)
    by_name, other = await queue.add_many([("ship", {"parcel": 1}), ("print", None)])
    assert (await options_of(by_name), await options_of(other)) == ((2, 3), (2, 2))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"path": 5}, "Expected `str`, got `int`"),
        ({"paht": "a.png"}, "paht"),
        ({"path": "a.png", "box": {"width": "wide"}}, r"\$\.box\.width"),
        (["a.png"], "got `array`"),
        (None, "missing required field `path`"),
    ],
)
async def test_data_that_is_added_by_the_name_of_a_task_is_checked(queue: Queue, data: Any, problem: str):
    resizing(queue)

    with pytest.raises(InvalidArguments, match=problem) as refused:
        await queue.add("resize", data)
    with pytest.raises(InvalidArguments) as bulk:
        await queue.add_many([("resize", {"path": "a.png"}), ("resize", data)])
    with pytest.raises(InvalidArguments):
        await asyncio.to_thread(queue.sync.add, "resize", data)

    assert "it takes (path, /, width=800, *, box=None)" in str(refused.value)
    assert bulk.value.item == 1
    assert await is_empty(queue)


async def test_data_that_fits_a_task_is_added_by_its_name(queue: Queue):
    resizing(queue)

    job = await queue.add("resize", {"path": "a.png", "box": {"width": 3, "since": "2024-05-06T00:00:00Z"}})

    assert (await job.refresh()).data == job.data


async def test_a_task_whose_types_are_not_known_here_is_added_by_its_name(queue: Queue):
    async def resize(box: Unknown) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - as the test says

    queue.task(resize)

    assert (await queue.add("resize", {"box": 1})).created


async def test_a_task_can_use_an_id_of_ones_own(queue: Queue):
    resize = resizing(queue).using(id="a")
    assert (await resize.add("a.png")).created
    assert not (await resize.add("a.png")).created
    with pytest.raises(DuplicateJob):
        await resize.add("b.png")


@pytest.mark.parametrize("options", [{"atempts": 3}, {"attempts": 0}, {"delay": "soonish"}])
def test_a_wrong_option_is_an_error_where_it_stands(queue: Queue, options: Any):
    with pytest.raises(InvalidInput):
        queue.task(**options)
    with pytest.raises(InvalidInput):
        resizing(queue).using(**options)


def test_an_id_is_no_option_of_a_task(queue: Queue):
    with pytest.raises(InvalidOption, match="using"):
        queue.task(id="a")


async def test_calls_of_several_tasks_are_added_together(queue: Queue):
    @queue.task
    def shrink(path: str) -> int:
        return len(path)

    jobs = await queue.add_many(
        [resizing(queue).call("a.png"), shrink.using(priority=-1).call("b.png"), ("plain", {"a": 1})]
    )
    assert [(job.name, job.data) for job in jobs] == [
        ("resize", {"path": "a.png"}),
        ("shrink", {"path": "b.png"}),
        ("plain", {"a": 1}),
    ]


async def test_a_result_is_read_as_the_task_says(queue: Queue):
    one, many = await resizing(queue).add("a"), (await queue.add_many([queue.tasks["resize"].call("b")]))[0]
    for job in (one, many):
        await complete_next(queue, {"width": 3, "since": "2024-05-06T00:00:00Z"})
        assert await job.result(timeout=PATIENCE) == Box(3, WHEN)
    plain = await queue.get(one.id)
    assert plain is not None
    assert await plain.result() == {"width": 3, "since": "2024-05-06T00:00:00Z"}


async def test_a_result_of_another_type_is_named(queue: Queue):
    job = await resizing(queue).add("a")
    await complete_next(queue, {"width": "wide"})
    with pytest.raises(UnexpectedResult, match=r"\$.width") as refused:
        await job.result(timeout=PATIENCE)
    assert (refused.value.queue, refused.value.job_id) == (queue.name, job.id)
    assert (await job.refresh()).result == {"width": "wide"}


async def test_a_task_without_a_result_type_answers_what_is_stored(queue: Queue):
    @queue.task
    async def loose(a: int):
        return a

    job = await loose.add(1)
    await complete_next(queue, {"any": 1})
    assert await job.result(timeout=PATIENCE) == {"any": 1}


async def test_a_failed_job_of_a_task_says_so(queue: Queue):
    job = await resizing(queue).add("a")
    await job.cancel()
    with pytest.raises(Exception, match="cancelled") as ended:
        await job.result(timeout=PATIENCE)
    assert not isinstance(ended.value, JobFailed | UnexpectedResult)


async def test_adds_of_tasks_share_a_trip(queue: Queue):
    resize = resizing(queue)
    jobs = await asyncio.gather(*(resize.add(str(n)) for n in range(50)))
    assert len({job.id for job in jobs}) == 50
    assert (await queue.counts())["waiting"] == 50


def test_a_queue_knows_its_tasks(queue: Queue):
    resize = resizing(queue)
    assert dict(queue.tasks) == {"resize": resize}
    assert repr(resize) == f"<Task 'resize' of {queue.name!r}>"


async def test_jobs_are_added_and_awaited_without_a_loop(queue: Queue):
    resize = resizing(queue)

    def add_and_wait() -> Box:
        job = resize.using(priority=5).add_sync("a.png", box=Box(3, WHEN))
        assert job.created
        assert job.data == {"path": "a.png", "box": {"width": 3, "since": "2024-05-06T00:00:00Z"}}
        result: Box = job.result(timeout=PATIENCE)
        return result

    async with Worker(queue):
        assert await asyncio.to_thread(add_and_wait) == Box(3, WHEN)


async def test_wrong_arguments_are_refused_without_a_loop_too(queue: Queue):
    with pytest.raises(InvalidArguments):
        await asyncio.to_thread(resizing(queue).add_sync, "a.png", hight=3)
    assert await is_empty(queue)


async def test_a_job_is_found_by_its_id_with_a_typed_result(queue: Queue):
    resize = resizing(queue)
    added = await resize.add("a.png", box=Box(3, WHEN))
    await complete_next(queue, {"width": 5})
    found = await resize.get(added.id)
    assert await found.result(timeout=PATIENCE) == Box(5)
    assert (await asyncio.to_thread(resize.get_sync, added.id)).id == added.id
    assert await resize.get("another") is None
    assert await resize.get((await queue.add("other")).id) is None, "it is a job of another name"


@pytest.mark.parametrize("word", ["delay", "send", "apply_async"])
def test_words_of_other_queues_lead_to_add(queue: Queue, word: str):
    task = resizing(queue)

    with pytest.raises(AttributeError, match=r"use task\.add"):
        getattr(task, word)
    assert not hasattr(task, "nonsense")


@pytest.mark.parametrize("parameter", ["job", "ctx", "context"])
async def test_a_function_that_seems_to_want_its_job_is_told_how_to_ask_for_it(queue: Queue, parameter: str):
    kinds = {"async def": "Job", "def": "SyncJob"}
    for definition, kind in kinds.items():
        names: dict[str, Any] = {}
        exec(f"{definition} deliver({parameter}, to): ...", names)  # noqa: S102 - a function for each word
        task = queue.task(name=f"deliver-{kind}")(names["deliver"])
        with pytest.raises(InvalidArguments) as refused:
            await task.add(to="you")
        assert f"annotate its parameter: `{parameter}: {kind}`" in str(refused.value)


async def test_an_argument_of_another_name_is_named(queue: Queue):
    @queue.task
    async def deliver(job: Job, to: str, *, at: str = "home") -> None: ...

    wrong: Any = deliver
    with pytest.raises(InvalidArguments, match="unexpected keyword argument 'too', did you mean 'to'") as refused:
        await wrong.add(too="you")
    assert "annotate" not in str(refused.value)
    with pytest.raises(InvalidArguments, match="missing a required argument: 'to'"):
        await wrong.add(at="work")


async def test_a_default_that_cannot_be_shown_does_not_stand_in_the_way(queue: Queue):
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    @queue.task
    async def deliver(to: str, how: Any = Mute()) -> None: ...  # noqa: B008

    wrong: Any = deliver
    with pytest.raises(InvalidArguments, match=r"it takes \(to, how\)"):
        await wrong.add()
