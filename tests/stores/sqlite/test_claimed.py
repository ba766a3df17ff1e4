"""What a process remembers of the jobs it claimed saves it a search, and is never taken for another job."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from ropeway.job.record import JobRecord
from ropeway.stores.sqlite import SQLiteStore
from ropeway.stores.sqlite.statements import statements
from ropeway.stores.sqlite.transaction import Transaction, WriterCache
from ropeway.stores.sqlite.verbs import Write
from ropeway.testing.factories import QUEUE, claim_request, complete, new_job, new_jobs

from .conftest import NewStore


async def _claim(store: SQLiteStore) -> JobRecord:
    [job] = (await store.claim(claim_request(1))).jobs
    return job


async def test_settling_does_not_look_for_ids_among_all_jobs(store: SQLiteStore):
    await store.add([new_jobs(3)])
    jobs = (await store.claim(claim_request(3))).jobs
    seen: list[str] = []

    def note(_: apsw.Cursor, sql: str, __: object) -> bool:
        seen.append(sql)
        return True

    def listen(tx: Transaction) -> None:
        tx._connection.set_exec_trace(note)

    await store._write(Write(listen))
    await store.settle(QUEUE, [complete(job) for job in jobs])

    assert statements("look")["located_active"] in seen
    assert statements("look")["located"] not in seen


async def test_a_sequence_number_that_comes_again_belongs_to_the_new_job(new_store: NewStore):
    first = new_store()
    await first.add([[new_job()]])
    await first.close()
    store = new_store()
    old = await _claim(store)
    await store.remove(QUEUE, [old.id], force=True)
    await store.add([[new_job()]])
    new = await _claim(store)
    assert new.order == old.order

    settled = await store.settle(QUEUE, [complete(old)])
    cancelled = await store.cancel(QUEUE, [old.id])

    assert [answer.verdict for answer in (*settled.answers, *cancelled)] == ["missing", "missing"]
    assert await store.get(QUEUE, [new.id]) == [new]


async def test_an_id_that_comes_again_is_the_new_job(store: SQLiteStore):
    await store.add([[new_job(id="same")]])
    old = await _claim(store)
    await store.remove(QUEUE, ["same"], force=True)
    await store.add([[new_job(id="same")]])

    late = await store.settle(QUEUE, [complete(old)])
    new = await _claim(store)
    settled = await store.settle(QUEUE, [complete(new)])

    assert [answer.verdict for answer in (*late.answers, *settled.answers)] == ["lost", "done"]


async def test_what_another_process_did_to_it_counts(store: SQLiteStore, path: Path):
    await store.add([[new_job()]])
    job = await _claim(store)
    other = apsw.Connection(str(path))
    other.execute("UPDATE active SET token = 'taken'")
    other.close()

    settled = await store.settle(QUEUE, [complete(job)])

    assert [answer.verdict for answer in settled.answers] == ["lost"]


async def test_jobs_that_are_forgotten_are_found_by_their_ids(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(WriterCache, "MOST_CLAIMED", 2)
    await store.add([new_jobs(6)])
    jobs = [*(await store.claim(claim_request(4))).jobs, *(await store.claim(claim_request(2))).jobs]

    settled = await store.settle(QUEUE, [complete(job) for job in jobs])

    assert [answer.verdict for answer in settled.answers] == ["done"] * 6
    assert (await store.count(QUEUE))["completed"] == 6
