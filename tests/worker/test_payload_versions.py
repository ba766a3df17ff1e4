"""Data of older and newer versions than a worker's job type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from ropeway import InvalidOption, Job, JobFailed, JobType, Queue, SyncJob, Worker
from ropeway.worker import typed
from tests.patience import PATIENCE
from tests.server.conftest import until


@dataclass
class V1:
    who: str


@dataclass
class V3:
    first: str
    last: str


IMPORT_1 = JobType("import", V1, str)
IMPORT_3 = JobType(
    "import",
    V3,
    str,
    version=3,
    upgrade={
        1: lambda old: {"names": old["who"].split()},
        2: lambda old: {"first": old["names"][0], "last": old["names"][1]},
    },
)


async def handled(worker: Worker, job_type: JobType[Any, str]) -> None:
    @worker.handler(job_type)
    async def run(data: Any) -> str:
        return f"{data!r}"


async def reason(job: Any) -> str:
    with pytest.raises(JobFailed) as failed:
        await job.result(timeout=PATIENCE)
    return failed.value.reason


async def test_older_data_is_brought_to_the_newest_version_step_by_step(queue: Queue):
    jobs = [
        await IMPORT_1.add(queue, V1("Ada Lovelace")),
        await queue.add("import", {"names": ["Ada", "Lovelace"]}, version=2),
        await IMPORT_3.add(queue, V3("Ada", "Lovelace")),
    ]
    worker = Worker(queue)
    await handled(worker, IMPORT_3)
    async with worker:
        results = {await job.result(timeout=PATIENCE) for job in jobs}
    assert results == {"V3(first='Ada', last='Lovelace')"}
    assert [(await job.refresh()).version for job in jobs] == [1, 2, 3]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"who": "Ada"}, "its upgrade from version 2 failed: IndexError: list index out of range"),
        ({"who": 7}, "its upgrade from version 1 failed: AttributeError"),
    ],
)
async def test_data_that_cannot_be_upgraded_fails_at_once(queue: Queue, data: Any, problem: str):
    job = await queue.add("import", data, attempts=5)
    worker = Worker(queue)
    await handled(worker, IMPORT_3)
    async with worker:
        assert (await reason(job)).startswith(f"invalid payload: {problem}")
    assert (await job.refresh()).attempts_made == 1


async def test_upgraded_data_is_checked(queue: Queue):
    wrong = JobType("import", V3, str, version=2, upgrade={1: lambda old: {"first": old["who"], "last": 7}})
    job = await queue.add("import", {"who": "Ada"})
    worker = Worker(queue)
    await handled(worker, wrong)
    async with worker:
        assert await reason(job) == "invalid payload: Expected `str`, got `int` - at `$.last`"


async def test_a_version_from_which_nothing_leads_is_refused(queue: Queue):
    no_way = JobType("import", V3, str, version=3, upgrade={2: lambda old: old})
    job = await queue.add("import", {"who": "Ada"})
    worker = Worker(queue, on_invalid="remove")
    await handled(worker, no_way)
    async with worker:
        assert "it is of version 1, and nothing leads from version 1 to 2" in await reason(job)
    assert not any((await queue.counts()).values())


async def test_a_newer_version_is_left_to_a_worker_that_knows_it(queue: Queue, caplog: pytest.LogCaptureFixture):
    job = await IMPORT_3.add(queue, V3("Ada", "Lovelace"))
    old = Worker(queue)
    await handled(old, IMPORT_1)
    async with old:
        await until(lambda: delayed(queue))
    assert "has data of version 3, and this worker knows 'import' up to version 1" in caplog.text
    snapshot = await job.refresh()
    assert (snapshot.attempts_made, snapshot.attempts_started) == (0, 1)

    new = Worker(queue)
    await handled(new, IMPORT_3)
    async with new:
        await job.promote()
        assert await job.result(timeout=PATIENCE) == "V3(first='Ada', last='Lovelace')"


async def delayed(queue: Queue) -> int:
    return (await queue.counts())["delayed"]


def test_a_job_of_a_newer_version_waits_longer_each_time():
    assert [typed.NEWER_BACKOFF.after(start, 0) for start in (1, 2, 20)] == [5_000, 10_000, 300_000]


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_a_handler_writes_is_of_the_version_that_it_was_given(queue: Queue, is_async: bool):
    two = JobType("import", V3, str, version=2, upgrade={1: lambda old: {"first": old["who"], "last": "?"}})
    worker = Worker(queue)

    async def on_loop(job: Job, data: V3) -> str:
        if job.attempt == 1:
            await job.update_data({"first": data.first, "last": "Lovelace"})
            raise ValueError
        return data.last

    def in_thread(job: SyncJob, data: V3) -> str:
        if job.attempt == 1:
            job.update_data({"first": data.first, "last": "Lovelace"})
            raise ValueError
        return data.last

    worker.handler(two)(on_loop if is_async else in_thread)
    job = await queue.add("import", {"who": "Ada"}, attempts=2)
    async with worker:
        assert await job.result(timeout=PATIENCE) == "Lovelace"
    assert (await job.refresh()).version == 2


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: JobType("a", V1, upgrade={1: str}), "and say version=2 or more"),
        (lambda: JobType("a", V1, version=2, upgrade={2: str}), "use versions from 1 to 1"),
        (lambda: JobType("a", V1, version=2, upgrade=cast(Any, {1: "x"})), "give a function"),
        (lambda: JobType("a", V1, version=2, upgrade=cast(Any, [str])), "give functions by version"),
        (lambda: JobType("a", V1, version=0), "use 1 to 1000000"),
        (lambda: IMPORT_3.call(V3("a", "b"), version=2), "is that of the job type, 3"),
        (lambda: Queue("a", "memory://", version=2), "is for a single job"),
        (lambda: Queue("a", "memory://").task(version=2), "is for job types"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any], problem: str):
    with pytest.raises(InvalidOption, match=problem):
        make()
