"""What is too much for one statement is done in several."""

from __future__ import annotations

import apsw
import pytest

from ropeway.store.commands import Find
from ropeway.stores.sqlite import SQLiteStore, storing
from ropeway.stores.sqlite.transaction import Transaction
from ropeway.stores.sqlite.verbs import Read, Write
from ropeway.testing.factories import QUEUE, claim_request, new_jobs


@pytest.fixture
async def small(store: SQLiteStore) -> SQLiteStore:
    """Twenty jobs of 20 kB, in a store whose statements can answer 100 kB."""
    await store.add([new_jobs(20, data='"' + "x" * 20_000 + '"')])

    def limit(tx: Transaction) -> None:
        tx._connection.limit(apsw.SQLITE_LIMIT_LENGTH, 100_000)

    await store._write(Write(limit))
    await store._read(Read(limit))
    return store


async def test_a_claim_gives_all_of_them_in_order(small: SQLiteStore):
    jobs = (await small.claim(claim_request(20))).jobs

    assert len(jobs) == 20
    assert [job.order for job in jobs] == sorted(job.order for job in jobs)
    assert (await small.count(QUEUE))["active"] == 20


async def test_a_repeated_claim_gives_all_of_them_again(small: SQLiteStore):
    request = claim_request(20, token="once")
    jobs = (await small.claim(request)).jobs

    assert (await small.claim(claim_request(20, token="once", repeat=True))).jobs == jobs


async def test_they_can_be_found(small: SQLiteStore):
    page = await small.find(Find(QUEUE, ("waiting",)))

    assert len(page.jobs) == 20
    assert await small.get(QUEUE, [job.id for job in page.jobs]) == page.jobs


async def test_a_large_bundle_is_added_whole(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storing, "MOST_AT_ONCE", 50_000)
    jobs = new_jobs(20, data='"' + "x" * 20_000 + '"')

    [answers] = await store.add([jobs])
    [again] = await store.add([jobs])

    assert {answer.verdict for answer in answers} == {"created"}
    assert {answer.verdict for answer in again} == {"found"}
    assert [job.id for job in (await store.find(Find(QUEUE, ("waiting",)))).jobs] == [job.id for job in jobs]
