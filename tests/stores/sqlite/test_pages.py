"""How many pages of the file the hot verbs write: what a job costs, without the noise of a clock."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import pytest

from ropeway.job.record import JobRecord
from ropeway.job.retention import Retention
from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.factories import QUEUE, SECOND, claim_request, complete, new_job, retry

Pages: TypeAlias = Callable[[Awaitable[Any]], Awaitable[int]]
BATCH = 100
MANY = 20_000


@pytest.fixture
def pages(path: Path) -> Pages:
    """Answers how many pages a verb writes to the -wal."""

    async def count(verb: Awaitable[Any]) -> int:
        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(1_000)
        assert connection.pragma("journal_mode") == "wal"
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        await verb
        written, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        connection.close()
        assert written > 0
        return written

    return count


@pytest.fixture
async def jobs(store: SQLiteStore) -> list[JobRecord]:
    """A batch that runs, with many behind it, of all priorities."""
    priorities = random.Random(5)
    await store.add([[new_job(priority=priorities.randrange(1_000)) for _ in range(MANY)]])
    return (await store.claim(claim_request(BATCH))).jobs


async def test_settling_and_claiming_a_batch_is_about_one_page_for_two_jobs(
    store: SQLiteStore, jobs: list[JobRecord], pages: Pages
):
    written = await pages(store.settle(QUEUE, [complete(job) for job in jobs], claim_request(BATCH)))

    assert written <= BATCH / 2


async def test_claiming_by_name_is_no_dearer(store: SQLiteStore, jobs: list[JobRecord], pages: Pages):
    request = claim_request(BATCH, names=(jobs[0].name, "other"))

    written = await pages(store.settle(QUEUE, [complete(job) for job in jobs], request))

    assert written <= BATCH / 2


async def test_retries_go_to_few_pages(store: SQLiteStore, jobs: list[JobRecord], pages: Pages):
    written = await pages(store.settle(QUEUE, [retry(job, SECOND) for job in jobs], claim_request(BATCH)))

    assert written <= BATCH / 2


async def test_a_job_that_is_removed_costs_its_own_two_pages(store: SQLiteStore, jobs: list[JobRecord], pages: Pages):
    """Its row and its id lie where they were added; nothing else does."""
    at_once = [complete(job, keep=Retention(count=0)) for job in jobs]

    written = await pages(store.settle(QUEUE, at_once, claim_request(BATCH)))

    assert written <= BATCH * 2.5


async def test_adding_one_job_writes_at_most_seven_pages(store: SQLiteStore, pages: Pages):
    """The job, its id, where it waits, its name, the queue, the event, and one more where a page is new."""
    await store.add([[new_job(f"job-{number:05}") for number in range(MANY)]])

    written = [await pages(store.add([[new_job(f"job-{MANY + number}")]])) for number in range(5)]

    assert sorted(written)[2] <= 7
