"""A bundle of one kind of job takes a shorter way into the file, and is stored the same."""

from __future__ import annotations

import pytest

from ropeway.job.record import NewJob
from ropeway.store.commands import Find
from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.factories import QUEUE, new_job


def _bundle(*, lifo: bool) -> list[NewJob]:
    return [new_job(data=f'"é {number}"', attempts=3, priority=7, lifo=lifo) for number in range(3)]


@pytest.mark.parametrize("lifo", [False, True])
@pytest.mark.parametrize("others", [[], [new_job(name="other", priority=9)]])
async def test_it_is_stored_as_it_is_beside_others(store: SQLiteStore, lifo: bool, others: list[NewJob]):
    jobs = _bundle(lifo=lifo)

    await store.add([[*jobs, *others]])

    found = (await store.find(Find(QUEUE, ("waiting",)))).jobs[: len(jobs)]
    assert [(job.id, job.name, job.data, job.options, job.priority) for job in found] == [
        (job.id, job.name, job.data, job.options, job.priority) for job in (jobs[::-1] if lifo else jobs)
    ]


async def test_some_of_it_may_be_delayed(store: SQLiteStore):
    jobs = [new_job(), new_job(delay=1_000), new_job()]

    await store.add([jobs])

    counts = await store.count(QUEUE)
    assert (counts["waiting"], counts["delayed"]) == (2, 1)
