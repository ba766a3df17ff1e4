"""What happens in a drain is what happens in a worker on a real store, in real time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ropeway import Backoff, Job, Keep, Queue, SyncJob, Unrecoverable, Worker, in_process
from ropeway.job.events import expand
from ropeway.job.states import OPEN
from ropeway.testing import FakeStore, drain
from tests.patience import PATIENCE
from tests.worker import process_handlers

TIMES: Final = {
    "created_at",
    "started_at",
    "finished_at",
    "due_at",
    "expires_at",
    "renewed_at",
    "lock_until",
    "worker",
    "id",
}
"""What differs between any two runs."""


class Scenario(msgspec.Struct, frozen=True):
    handler: Callable[..., Any] | tuple[Any, ...]
    data: Any = None
    options: dict[str, Any] = {}
    worker: dict[str, Any] = {}
    meanwhile: Callable[[Queue], Awaitable[None]] | None = None


async def echo(job: Job) -> Any:
    await job.progress({"done": 1})
    await job.log("read")
    return job.data


def echo_in_a_thread(job: SyncJob) -> Any:
    job.progress(100)
    return [job.data, job.attempt]


async def succeed_at_the_third(job: Job) -> str:
    if job.attempt < 3:
        raise ValueError(f"attempt {job.attempt}")
    return "at last"


async def fail(job: Job) -> None:
    raise KeyError("street")


def fail_in_a_thread(job: SyncJob) -> None:
    raise StopIteration("odd")


async def give_up(job: Job) -> None:
    raise Unrecoverable("moved away")


async def sleep_long(job: Job) -> None:
    await asyncio.sleep(30)


async def clean_up_slowly(job: Job) -> str:
    try:
        await asyncio.sleep(30)
    finally:
        await asyncio.sleep(0.01)
    return "never"


async def postpone_once(job: Job) -> int:
    if job.record.attempts_started == 1:
        job.postpone(0.02)
    return job.attempt


async def discard(job: Job) -> None:
    job.discard()
    raise ValueError("no use")


async def answer_nonsense(job: Job) -> object:
    return object()


async def exit_hard(job: Job) -> None:
    raise SystemExit(3)


async def rewrite(job: Job) -> None:
    await job.update_data({"attempt": job.attempt})
    raise ValueError("again")


async def hand_over(job: Job) -> str | None:
    if job.name == "second":
        return "second"
    await job.queue.add("second", id="second", delay=0.02)
    return None


async def die_once(queue: Queue) -> None:
    await Worker(queue, echo, lock_duration=0.1).claim()


async def cancel_it(queue: Queue) -> None:
    await queue.cancel("job", "not needed")


def no_patience(attempt: int, error: BaseException, job: Any) -> float:
    return -1 if attempt == 2 else 0.01


SCENARIOS: Final = {
    "a coroutine": Scenario(echo, {"to": "you"}),
    "a thread": Scenario(echo_in_a_thread, "data"),
    "a process": Scenario((process_handlers.report,), [1, 2, 3]),
    "a failing process": Scenario((process_handlers.raise_value_error,), None, {"attempts": 2}),
    "a process that dies": Scenario((process_handlers.exit_at_once,)),
    "retries": Scenario(succeed_at_the_third, None, {"attempts": 5}),
    "retries with backoff": Scenario(succeed_at_the_third, None, {"attempts": 5, "backoff": Backoff.exponential(0.01)}),
    "exhausted": Scenario(fail, None, {"attempts": 3, "backoff": 0.01}),
    "a failing thread": Scenario(fail_in_a_thread, None, {"attempts": 2}),
    "unrecoverable": Scenario(give_up, None, {"attempts": 3}),
    "classified as fatal": Scenario(fail, None, {"attempts": 3}, {"classify": lambda error, job: "fatal"}),
    "a classify that raises": Scenario(fail, None, {"attempts": 2}, {"classify": lambda error, job: 1 / 0}),
    "a custom backoff": Scenario(
        fail, None, {"attempts": 9, "backoff": Backoff.custom("mine")}, {"backoffs": {"mine": no_patience}}
    ),
    "a timeout": Scenario(sleep_long, None, {"timeout": 0.05}),
    "a timeout that is retried": Scenario(sleep_long, None, {"timeout": 0.05, "attempts": 2, "backoff": 0.01}),
    "a timeout with clean-up": Scenario(clean_up_slowly, None, {"timeout": 0.05}),
    "a delay": Scenario(echo, "late", {"delay": 0.05}),
    "a postponement": Scenario(postpone_once),
    "too many starts": Scenario(postpone_once, None, {"max_starts": 1}),
    "discarded": Scenario(discard, None, {"attempts": 3}),
    "a result that is no JSON": Scenario(answer_nonsense, None, {"attempts": 3}),
    "an exit": Scenario(exit_hard, None, {"attempts": 2}),
    "data that changes": Scenario(rewrite, {}, {"attempts": 2}),
    "a job that adds a job": Scenario(hand_over),
    "removed when it completes": Scenario(echo, None, {"remove_on_complete": True}),
    "kept for a while": Scenario(echo, None, {"remove_on_complete": Keep(age="1 hour")}),
    "a worker that died": Scenario(echo, "again", meanwhile=die_once),
    "a worker that died, fatal": Scenario(echo, worker={"on_stalled": "fail"}, meanwhile=die_once),
    "cancelled before it began": Scenario(echo, meanwhile=cancel_it),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
async def test_a_drain_ends_as_a_worker_does(scenario: Scenario, tmp_path: Path):
    async with Queue("letters", f"sqlite:///{tmp_path}/jobs.db?durability=fast") as real:
        async with await arranged(real, scenario):
            await finished(real)
        in_production = await observed(real)
    fake = Queue("letters", store=FakeStore())
    await drain(await arranged(fake, scenario), raise_failures=False)

    assert await observed(fake) == in_production


async def arranged(queue: Queue, scenario: Scenario) -> Worker:
    """A worker that is to run the scenario's job."""
    await queue.add("letter", scenario.data, id="job", **scenario.options)
    if scenario.meanwhile:
        await scenario.meanwhile(queue)
    handler = in_process(scenario.handler[0]) if isinstance(scenario.handler, tuple) else scenario.handler
    return Worker(queue, handler, concurrency=1, stalled_interval=0.1, **scenario.worker)


async def finished(queue: Queue) -> None:
    async with asyncio.timeout(PATIENCE):
        async for _ in queue.events("start"):
            counts = await queue.counts()
            if not any(counts.get(state) for state in OPEN):
                return


async def observed(queue: Queue) -> dict[str, Any]:
    """All that can be seen of a queue afterwards, as far as it does not tell the time."""
    jobs = {job.id: job for job in await queue.find()}
    histories = {id: await queue.history(id) for id in jobs}
    entries = (await queue.store.events(queue.name)).entries
    events = [event for stored in entries for event in expand(queue.name, stored.id, stored.entry)]
    return {
        "jobs": {id: plain(job.snapshot) for id, job in jobs.items()},
        "failures": {id: [timeless(failed.reason) for failed in histories[id].failures] for id in jobs},
        "logs": {id: [line.text for line in histories[id].log] for id in jobs},
        "events": [(event.name, event.job_id, event.data.get("delay")) for event in events if event.job_id],
    }


def plain(snapshot: Any) -> dict[str, Any]:
    kept = {key: value for key, value in msgspec.to_builtins(snapshot).items() if key not in TIMES}
    return {**kept, "reason": timeless(kept["reason"])}


def timeless(reason: str | None) -> str | None:
    """A reason that names a worker and an instant, without them."""
    return reason and re.sub(r"worker \S+ last renewed its lock at \S+", "worker ... at ...", reason)
