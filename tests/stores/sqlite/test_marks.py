"""Marks where SQLite has ways of its own: bits, rows that are renumbered, batches with one id twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ropeway.job.instants import LAST_INSTANT
from ropeway.job.marks import Mark, Marking
from ropeway.job.outcomes import Outcome
from ropeway.job.record import JobRecord
from ropeway.job.retention import Retention
from ropeway.store.values import Answer, JobUpdate
from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.arrange import active, add_one, claim, claim_one, read
from ropeway.testing.conformance.waiting_claims import begun, waiting_request
from ropeway.testing.factories import DAY, NOW, QUEUE, claim_request, complete, new_jobs, retry, token_of

from .conftest import NewStore
from .singly import add
from .test_extras import rows

GONE = Retention(count=0)
MARKED = Marking((Mark("a", "1"),))


async def mark(store: SQLiteStore, id: str, marking: Marking = MARKED, token: str | None = None) -> None:
    [answer] = await store.update(QUEUE, [JobUpdate(id, token, marking=marking)], now=NOW)
    assert answer.verdict == "done"


def await_mark(job: JobRecord, name: str, marking: Marking | None = None) -> Outcome:
    return Outcome(job.id, token_of(job), "postpone", delay=LAST_INSTANT, awaits=name, marking=marking)


class TestPlainJobs:
    @pytest.mark.parametrize("number", [1, 3])
    async def test_no_statement_is_about_marks(self, new_store: NewStore, sql: list[str], number: int):
        store = new_store()
        await store.add([new_jobs(number)], now=NOW)
        held = await claim(store, number)
        await store.update(QUEUE, [JobUpdate(job.id, job.token, progress="1") for job in held], now=NOW)
        await store.settle(QUEUE, [retry(job) for job in held], claim_request(number), now=NOW)
        await store.remove(QUEUE, [job.id for job in held], force=True, now=NOW)

        assert any(said.startswith("UPDATE active") for said in sql)
        assert [said for said in sql if said.startswith(("INSERT INTO mark", "UPDATE mark", "DELETE FROM mark"))] == []


class TestRemoval:
    """Whatever its way was, a job that is removed leaves no mark in the file."""

    async def test_of_a_job_marked_while_it_ran(self, store: SQLiteStore, path: Path):
        held = await active(store, id="job")
        await mark(store, "job", token=held.token)

        await store.settle(QUEUE, [complete(held, keep=GONE)], now=NOW)

        assert rows(path, "SELECT * FROM mark") == []

    async def test_of_a_job_marked_by_the_outcome_that_removes_it(self, store: SQLiteStore, path: Path):
        held = await active(store, id="job")

        await store.settle(QUEUE, [replace(complete(held, keep=GONE), marking=MARKED)], now=NOW)

        assert rows(path, "SELECT * FROM mark") == []

    @pytest.mark.parametrize("delay", [0, DAY])
    async def test_of_a_job_marked_before_it_ran(self, store: SQLiteStore, path: Path, delay: int):
        await add_one(store, id="job", delay=delay)
        await mark(store, "job")

        await store.settle(QUEUE, [complete(await claim_one(store, now=NOW + delay), keep=GONE)], now=NOW + delay)

        assert rows(path, "SELECT * FROM mark") == []

    async def test_of_a_job_that_went_behind_others(self, store: SQLiteStore, path: Path):
        held = await active(store, id="job", attempts=2)
        await mark(store, "job", token=held.token)
        await store.settle(QUEUE, [retry(held)], now=NOW)
        assert (await read(store, "job")).marks == (Mark("a", "1", NOW),)

        await store.remove(QUEUE, ["job"], now=NOW)

        assert rows(path, "SELECT * FROM mark") == []


class TestClaims:
    async def test_a_repeated_claim_has_them(self, store: SQLiteStore):
        request = claim_request()
        await add_one(store, id="job")
        await mark(store, "job")
        [first] = (await store.do(request, NOW)).jobs

        [again] = (await store.do(replace(request, repeat=True), NOW)).jobs

        assert first.marks == again.marks == (Mark("a", "1", NOW),)

    async def test_a_claim_by_name_has_them(self, store: SQLiteStore):
        await add_one(store, id="other", name="other", priority=-1)
        await add_one(store, id="job", name="wanted")
        await mark(store, "job")

        [job] = (await store.do(claim_request(names=("wanted",)), NOW)).jobs

        assert job.marks == (Mark("a", "1", NOW),)

    async def test_a_waiting_claim_is_served_by_a_mark_that_was_awaited(self, store: SQLiteStore):
        await add_one(store, id="job")
        held = await claim_one(store)
        await store.settle(QUEUE, [await_mark(held, "a")])
        claiming = await begun(store, waiting_request())

        await store.update(QUEUE, [JobUpdate("job", marking=MARKED)])

        [job] = (await claiming).jobs
        assert [(one.name, one.value) for one in job.marks] == [("a", "1")]

    async def test_a_job_in_the_inbox_gets_one(self, store: SQLiteStore):
        await add(store, "job")

        [answer] = await store.update(QUEUE, [JobUpdate("job", marking=MARKED)])

        assert answer == Answer("done", "waiting")
        assert [one.name for one in (await read(store, "job")).marks] == ["a"]


class TestBatches:
    async def test_changes_of_one_job_take_effect_in_their_order(self, store: SQLiteStore):
        held = await active(store, id="job")
        markings = [MARKED, Marking((Mark("b", "1"),), forgets=("a",)), Marking((Mark("b", "2"),))]

        await store.update(QUEUE, [JobUpdate("job", held.token, marking=one) for one in markings], now=NOW)

        assert (await read(store, "job")).marks == (Mark("b", "2", NOW),)

    async def test_a_change_of_a_job_that_the_one_before_promoted_finds_it_waiting(self, store: SQLiteStore):
        held = await active(store, id="job")
        await store.settle(QUEUE, [await_mark(held, "a")], now=NOW)
        changes = [JobUpdate("job", marking=MARKED), JobUpdate("job", progress="7")]

        answers = await store.update(QUEUE, changes, now=NOW)

        assert answers == [Answer("done", "delayed"), Answer("done", "waiting")]
        assert (await claim_one(store)).progress == "7"

    async def test_one_mark_is_written_without_the_others(self, new_store: NewStore, sql: list[str]):
        store = new_store()
        held = await active(store, id="job")
        await mark(store, "job", Marking(tuple(Mark(f"m-{n}", "1") for n in range(100))), held.token)
        sql.clear()

        await mark(store, "job", token=held.token)

        written = [said for said in sql if said.startswith(("INSERT", "UPDATE", "DELETE"))]
        assert [said.split(" (")[0] for said in written] == ["INSERT INTO mark"]


class TestAwaited:
    async def test_a_mark_that_the_outcome_writes_is_there(self, store: SQLiteStore):
        held = await active(store)

        await store.settle(QUEUE, [await_mark(held, "a", MARKED)], now=NOW)

        assert (await read(store, held.id)).state == "waiting"

    async def test_a_mark_that_the_outcome_forgets_is_not(self, store: SQLiteStore):
        held = await active(store)
        await mark(store, held.id, token=held.token)

        await store.settle(QUEUE, [await_mark(held, "a", Marking(forgets=("a",)))], now=NOW)

        assert (await read(store, held.id)).state == "delayed"

    @pytest.mark.parametrize("name", ['"', "\\", "'", "é", "123", "null", "$.key", "\U0001f600", "x" * 255])
    async def test_any_name_is_awaited(self, store: SQLiteStore, name: str):
        held = await active(store)
        await store.settle(QUEUE, [await_mark(held, name)], now=NOW)

        await mark(store, held.id, Marking((Mark(name, '"\\u0000"'),)))

        assert (await claim_one(store)).marks == (Mark(name, '"\\u0000"', NOW),)
