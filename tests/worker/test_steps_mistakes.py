"""Mistakes in handlers with steps: nothing is passed over, and errors say what to do."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ropeway import (
    Flow,
    Job,
    JobFailed,
    Phase,
    PhaseContext,
    Pipeline,
    Queue,
    SignalTimeout,
    SyncJob,
    Worker,
    in_process,
)
from ropeway.errors import Postponed
from tests.patience import PATIENCE

from . import step_handlers
from .step_runs import Calls, echo, run

WAITS = pytest.mark.parametrize(
    "call",
    [
        lambda job: job.sleep(0.02),
        lambda job: job.wait_for("never", timeout=0.02),
        lambda job: job.gather(Flow("echo", 1, delay=0.02)),
    ],
    ids=["sleep", "wait", "gather"],
)


@WAITS
async def test_a_caught_exception_does_not_end_a_wait(queue: Queue, call: Callable[[Job], Any]):
    async def work(job: Job) -> int:
        with suppress(BaseException):
            await call(job)
        return job.record.attempts_started

    assert await run(queue, work) == 2


async def test_no_step_runs_before_the_end_of_a_sleep_that_was_caught(queue: Queue):
    started: list[int] = []

    async def work(job: Job) -> None:
        with suppress(BaseException):
            await job.sleep(0.02)
        await job.step("after", started.append, job.record.attempts_started)

    await run(queue, work)
    assert started == [2]


async def test_sleeps_whose_exceptions_are_gathered(queue: Queue):
    """`return_exceptions` makes a value of the exception: the job sleeps all the same, first for the shorter time."""
    calls = Calls()

    async def work(job: Job) -> list[Any]:
        sleeps = [job.sleep("1 day"), job.sleep(0.02)] if job.record.attempts_started == 1 else []
        return await asyncio.gather(job.step("first", calls, 1), *sleeps, return_exceptions=True)

    assert await run(queue, work) == [1]
    assert calls.seen == {1: 1}


@pytest.mark.parametrize("wrap", [lambda function: function, in_process], ids=["thread", "process"])
@pytest.mark.parametrize("handler", [step_handlers.hide_a_sleep, step_handlers.hide_a_sleep_before_children])
async def test_a_caught_exception_in_threads_and_processes(queue: Queue, tmp_path: Path, wrap: Any, handler: Any):
    notes = tmp_path / "notes"

    assert await run(queue, wrap(handler), str(notes)) == "attempt 2"
    assert notes.read_text() == "attempt 2\n"


@pytest.mark.parametrize("wrap", [lambda function: function, in_process], ids=["thread", "process"])
async def test_no_sleep_begins_before_the_end_of_a_gather_that_was_caught(queue: Queue, wrap: Any):
    # The first attempt gathers, the second sleeps, the third returns.
    assert await run(queue, wrap(step_handlers.hide_a_gather)) == 3


async def test_a_phase_does_not_end_before_its_sleep(queue: Queue):
    async def nap(job: Job, _: PhaseContext) -> int:
        with suppress(BaseException):
            await job.sleep(0.02)
        return job.record.attempts_started

    async def both(_: Job, ctx: PhaseContext) -> Any:
        return ctx.phase_results()

    phases = [
        Phase("nap", nap),
        Phase("process", in_process(step_handlers.hide_the_end_of_a_sleep)),
        Phase("both", both),
    ]
    assert await run(queue, Pipeline(phases)) == {"nap": 2, "process": 3}


async def test_a_phase_that_is_tried_again_sleeps_again(queue: Queue):
    failures = [ConnectionError("try again")]

    async def nap(job: Job, _: PhaseContext) -> int:
        try:
            await job.sleep(0.3)
        except Postponed:
            if failures:
                raise failures.pop() from None
            raise
        return job.record.attempts_started

    assert await run(queue, Pipeline([Phase("nap", nap, attempts=2)])) == 2


FORGOTTEN = pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda job: job.step("fetch", echo, job), "job.step('fetch', ...)"),
        (lambda job: job.sleep("1 day"), "job.sleep(...)"),
        (lambda job: job.sleep("1 day", name="nap"), "job.sleep('nap', ...)"),
        (lambda job: job.wait_for("paid"), "job.wait_for('paid', ...)"),
        (lambda job: job.gather(Flow("echo")), "job.gather(...)"),
        (lambda job: job.wait_for_children(), "job.wait_for_children(...)"),
    ],
    ids=["step", "sleep", "named", "wait", "gather", "children"],
)


@FORGOTTEN
async def test_a_forgotten_await_fails_the_job(queue: Queue, call: Callable[[Job], Any], name: str):
    async def work(job: Job) -> str:
        call(job)
        return "done"

    with pytest.raises(JobFailed) as failed:
        await run(queue, work, attempts=3)
    assert failed.value.reason == f"InvalidInput: {name} was called without await, and did nothing: await it"
    [job] = (await queue.find("failed")).jobs
    assert job.snapshot.attempts_made == 1


@FORGOTTEN
async def test_a_forgotten_await_fails_its_phase(queue: Queue, call: Callable[[Job], Any], name: str):
    async def bad(job: Job, _: PhaseContext) -> str:
        call(job)
        return "done"

    async def good(_: Job, __: PhaseContext) -> None: ...

    async with Worker(queue, {"work": Pipeline([Phase("bad", bad, attempts=2), Phase("good", good)])}):
        job = await queue.add("work", attempts=3)
        with pytest.raises(JobFailed, match="without await"):
            await job.result(timeout=PATIENCE)
        phases = (await job.refresh()).phases
    assert [phase.state for phase in phases] == ["failed", "pending"]
    assert name in (phases[0].reason or "")


async def test_a_forgotten_await_in_what_a_def_handler_returned(queue: Queue):
    async def go_on(job: Any) -> str:
        job.sleep("1 day")
        return "done"

    def work(job: SyncJob) -> Any:
        return go_on(job)

    with pytest.raises(JobFailed, match=r"job.sleep\(...\) was called without await"):
        await run(queue, work)


async def test_calls_that_began_and_were_left_are_no_mistake(queue: Queue):
    """A step that lost a race, and was cancelled."""
    never = asyncio.Event()

    async def work(job: Job) -> Any:
        tasks = [asyncio.create_task(job.step("slow", never.wait)), asyncio.create_task(job.step("quick", echo, job))]
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        await asyncio.wait(others)
        return done.pop().result()

    assert await run(queue, work, 5) == 5


letters = Queue("letters", "memory://")


@letters.task
async def square(number: int) -> int:
    return number * number


@letters.task
def cube(number: int) -> int:
    return number**3


GATHERED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "list": (lambda _: [Flow("echo")], "a list of them: unpack it by *, as in job.gather(*calls)"),
    "generator": (lambda _: (Flow("echo") for _ in range(3)), "a generator of them: unpack it by *"),
    "no calls": (lambda _: [], "a list of them: unpack it by *"),
    "step": (lambda job: job.step("page", echo, job), "job.step(...): use asyncio.gather for steps"),
    "steps": (lambda job: [job.step("page", echo, job)], "job.step(...): use asyncio.gather for steps"),
    "sleep": (lambda job: job.sleep(1), "job.sleep(...): use asyncio.gather for steps and other calls of the job"),
    "called": (lambda _: square(3), "the coroutine square(...): use square.call(...)"),
    "called def": (lambda _: cube(3), "27: use task.call(...)"),
    "future": (lambda _: asyncio.get_running_loop().create_future(), "use asyncio.gather"),
    "task": (lambda _: square, "itself: use its call(...)"),
    "function": (lambda _: echo, "make it a task by @queue.task"),
    "added": (lambda job: job, "a job that was added before"),
    "nothing": (lambda _: None, "None: use task.call(...)"),
}


@pytest.mark.parametrize("case", GATHERED)
async def test_what_cannot_be_gathered_says_how_to_write_it(queue: Queue, case: str):
    """No warning of a coroutine that was never awaited stands beside it: it would fail this test."""
    make, instead = GATHERED[case]

    async def work(job: Job) -> Any:
        return await job.gather(Flow("echo"), make(job))

    with pytest.raises(JobFailed) as failed:
        await run(queue, work)
    gc.collect()
    reason = failed.value.reason
    assert reason.startswith("InvalidInput: job.gather takes task.call(...) and Flow(...), and not ")
    assert instead in reason


@pytest.mark.parametrize("wrap", [lambda function: function, in_process], ids=["thread", "process"])
async def test_what_cannot_be_gathered_in_threads_and_processes(queue: Queue, wrap: Any):
    with pytest.raises(JobFailed, match=r"job\.gather takes .* not a list of them: unpack it by \*"):
        await run(queue, wrap(step_handlers.gather_a_list))
    with pytest.raises(JobFailed, match=r"not the coroutine sleep\(\.\.\.\)"):
        await run(queue, wrap(step_handlers.gather_a_coroutine))
    gc.collect()


async def test_a_result_that_was_not_awaited_says_so(queue: Queue):
    async def work(_: Job) -> Any:
        return [asyncio.get_running_loop().create_future()]

    with pytest.raises(JobFailed, match=r"\$\[0\] is a Future; await it first"):
        await run(queue, work)


async def test_a_refused_result_of_a_step_has_its_own_path(queue: Queue):
    async def work(job: Job) -> Any:
        return await job.step("rows", lambda: {"rows": [1, {2}]})

    with pytest.raises(JobFailed, match=r"result of step 'rows' cannot be stored as JSON: \$\.rows\[1\] is a set;"):
        await run(queue, work)


async def leave_the_name_out(job: Any) -> Any:
    return await job.step(step_handlers.a_number, "page")


NAMELESS = [leave_the_name_out, step_handlers.forget_the_name, in_process(step_handlers.forget_the_name)]


@pytest.mark.parametrize("handler", NAMELESS, ids=["loop", "thread", "process"])
async def test_a_forgotten_name_of_a_step_says_where_it_belongs(queue: Queue, handler: Any):
    with pytest.raises(JobFailed) as failed:
        await run(queue, handler)
    problem = "the name of a step comes first, before its function"
    assert failed.value.reason == f'InvalidInput: {problem}: job.step("a_number", a_number, ...)'


async def test_a_function_without_a_name_of_its_own_where_that_of_the_step_belongs(queue: Queue):
    async def work(job: Any) -> Any:
        return await job.step(lambda page: page, "page")

    with pytest.raises(JobFailed, match=r"comes first, before its function: job\.step\(name, function, \.\.\.\)"):
        await run(queue, work)


def busy(seconds: float) -> None:
    time.sleep(seconds)


@pytest.mark.parametrize("function", [asyncio.sleep, busy], ids=["loop", "thread"])
async def test_a_timeout_names_its_step(queue: Queue, function: Any):
    async def work(job: Job) -> None:
        await job.step("charge", function, 0.03, timeout=0.01)

    with pytest.raises(JobFailed, match=r"AttemptTimeout: step 'charge' took longer than its timeout of 0\.01 s"):
        await run(queue, work)


@pytest.mark.parametrize("wrap", [lambda function: function, in_process], ids=["thread", "process"])
async def test_a_timeout_names_its_step_in_threads_and_processes(queue: Queue, wrap: Any):
    with pytest.raises(JobFailed, match=r"AttemptTimeout: step 'charge' took longer than its timeout of 0\.01 s"):
        await run(queue, wrap(step_handlers.take_long))


@pytest.mark.parametrize(
    "handler",
    [
        step_handlers.wait_for_another,
        in_process(step_handlers.wait_for_another),
        step_handlers.wait_for_another_at_once,
        in_process(step_handlers.wait_for_another_at_once),
    ],
)
async def test_a_signal_timeout_names_the_signals_that_came(queue: Queue, handler: Any):
    """As `payment` while the handler waits for `paymnet`, but none that another wait has answered."""
    job = await queue.add("work")
    await queue.signal(job.id, "payment", 5)
    await queue.signal(job.id, "address", "here")
    async with Worker(queue, {"work": handler}):
        with pytest.raises(JobFailed, match=r"no signal 'paymnet' came for .* in time; there came 'payment'$"):
            await job.result(timeout=PATIENCE)


@pytest.mark.parametrize("handler", [step_handlers.sleep_until, in_process(step_handlers.sleep_until)])
async def test_a_moment_that_has_passed_is_over(queue: Queue, handler: Any):
    """When the handler begins again after the sleep, or after the timeout, `when - now` is negative."""
    moment = datetime.now(UTC) + timedelta(milliseconds=300)

    assert await run(queue, handler, moment.isoformat()) == "nobody paid"


async def test_a_moment_that_has_passed_is_over_on_the_loop(queue: Queue):
    moment = datetime.now(UTC) + timedelta(milliseconds=50)

    async def work(job: Job) -> str:
        await job.sleep(moment - datetime.now(UTC))
        try:
            await job.wait_for("paid", timeout=moment - datetime.now(UTC))
        except SignalTimeout:
            return "nobody paid"
        return "paid"

    assert await run(queue, work) == "nobody paid"
