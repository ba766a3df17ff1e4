"""Extras where SQLite has ways of its own: fast paths for plain jobs, the inbox, parked claims, shared transactions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from ropeway.errors import StoreError
from ropeway.job.dedupe import DedupeRule
from ropeway.job.extras import Extras
from ropeway.store.values import Added, KeyHolder, ScheduleWrite, StallRules
from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.arrange import claim, claim_one, entries, read
from ropeway.testing.conformance.waiting_claims import begun, waiting_request
from ropeway.testing.factories import NOW, QUEUE, SECOND, claim_request, complete, keyed, new_flow, new_job, new_jobs

from .conftest import NewStore
from .singly import add

SOON = Extras(start_within=SECOND)


def rows(path: Path, sql: str) -> list[Any]:
    connection = apsw.Connection(str(path))
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


class TestPlainJobs:
    @pytest.mark.parametrize("number", [1, 3])
    async def test_no_statement_is_about_what_they_do_not_have(self, new_store: NewStore, sql: list[str], number: int):
        store = new_store()
        await store.add([new_jobs(number)], now=NOW)
        held = await claim(store, number)
        await store.settle(QUEUE, [complete(job) for job in held], claim_request(), now=NOW)
        await store.remove(QUEUE, [job.id for job in held], now=NOW)

        assert any(said.startswith("INSERT INTO finished") for said in sql)
        beside = [said for said in sql if "CREATE" not in said and ("deadline " in said or "held_key" in said)]
        assert beside == []

    async def test_a_queue_is_free_of_deadlines_again_once_they_have_passed(self, new_store: NewStore, sql: list[str]):
        store = new_store()
        await store.add([[new_job("late", extras=SOON)]], now=NOW)
        await store.tick(QUEUE, StallRules(), now=NOW + SECOND)
        sql.clear()

        await claim(store, now=NOW + SECOND)

        assert not [said for said in sql if "deadline " in said]


class TestParkedClaims:
    async def test_a_claim_that_waits_gets_a_job_with_its_extras_and_it_no_longer_expires(self, store: SQLiteStore):
        claiming = await begun(store, waiting_request())
        job = new_job("job", is_fresh=True, extras=replace(SOON, dedupe=DedupeRule("key")))
        await store.add([[job]])

        [claimed] = (await claiming).jobs

        assert claimed.extras == job.extras
        assert (await store.tick(QUEUE, StallRules())).next_at == claimed.lock_until
        assert await store.dedupe(QUEUE, "key") == KeyHolder("job")

    async def test_a_plain_job_that_a_keyed_one_follows_in_the_same_call_is_there(self, store: SQLiteStore):
        claiming = await begun(store, waiting_request())
        await store.add([[new_job("plain")], [keyed("key", id="a")], [keyed("key", "supersede", id="b")]])

        [claimed] = (await claiming).jobs

        assert claimed.id == "plain"
        assert [(await read(store, id)).state for id in ("a", "b")] == ["cancelled", "waiting"]

    async def test_a_job_that_a_schedule_adds_and_removes_is_not_started(self, store: SQLiteStore):
        claiming = await begun(store, waiting_request())
        write = ScheduleWrite("nightly", "1", adds=(new_job("gone", is_fresh=True),), removes=("gone",))
        await store.write_schedules(QUEUE, [write])
        await store.add([[new_job("next", is_fresh=True)]])

        assert [job.id for job in (await claiming).jobs] == ["next"]


class TestKeys:
    async def test_an_add_that_fails_gives_its_keys_back(self, store: SQLiteStore):
        await store.add([[new_job("known", data="1")]], now=NOW)

        [answers] = await store.add([[keyed("key", id="a"), keyed("other", id="known", data="2")]], now=NOW)

        assert [one.verdict for one in answers] == ["skipped", "conflict"]
        assert [await store.dedupe(QUEUE, key, now=NOW) for key in ("key", "other")] == [None, None]

    async def test_keys_of_different_times_are_taken_together_or_not_at_all(self, store: SQLiteStore, path: Path):
        await store.add([[keyed("held", "throttle", SECOND, id="a")]], now=NOW)

        [answers] = await store.add([[keyed("free", id="b"), keyed("held", "throttle", SECOND, id="c")]], now=NOW)

        assert answers == [Added("b", "created"), Added("a", "deduplicated")]
        assert rows(path, "SELECT key, holder FROM held_key ORDER BY key") == [("free", "b"), ("held", "a")]

    @pytest.mark.parametrize("key", ['"', "\\", "'", "é", "123", "null", "{}", "$.key", "\U0001f600", "x" * 255])
    async def test_any_key_is_taken_and_freed(self, store: SQLiteStore, key: str):
        await store.add([[keyed(key, id="a"), keyed(f"{key[:200]}.", id="b")]], now=NOW)
        [[answer]] = await store.add([[keyed(key, id="c")]], now=NOW)
        assert answer == Added("a", "deduplicated")

        await store.settle(QUEUE, [complete(await claim_one(store))], now=NOW)

        assert await store.dedupe(QUEUE, key, now=NOW) is None

    async def test_the_parent_of_a_job_superseded_in_the_same_call_is_told(self, store: SQLiteStore):
        flow = new_flow(new_job("root"), keyed("key", id="child"))
        await store.add([flow, [keyed("key", "supersede", id="new")]], now=NOW)

        assert (await read(store, "root")).state == "failed"

    async def test_a_job_in_the_inbox_is_known_to_one_with_a_key(self, store: SQLiteStore):
        await add(store, "a")

        [[answer]] = await store.add([[keyed("key", id="a", data="2")]])

        assert answer.verdict == "conflict"
        assert await store.dedupe(QUEUE, "key") is None


class TestTransactions:
    async def test_a_rollback_frees_the_keys_and_deadlines_of_its_jobs(self, store: SQLiteStore):
        inside = store.own()
        await inside.begin()
        job = new_job("a", extras=replace(SOON, dedupe=DedupeRule("key")))
        assert await inside.add([job]) == [Added("a", "created")]
        assert await inside.add([keyed("key", id="b")]) == [Added("a", "deduplicated")]
        await inside.roll_back()

        assert await store.dedupe(QUEUE, "key") is None
        assert (await store.tick(QUEUE, StallRules())).next_at is None

    async def test_a_call_that_fails_beside_others_leaves_no_deadline(self, store: SQLiteStore, path: Path):
        bad = new_job("bad", data="\ud800", extras=SOON)
        jobs = [new_job("good", extras=Extras(start_by=NOW + 10 * SECOND)), bad, new_job("plain")]

        answers = await asyncio.gather(*(store.add([[job]], now=NOW) for job in jobs), return_exceptions=True)

        assert [isinstance(answer, Exception) for answer in answers] == [False, True, False]
        assert rows(path, "SELECT first_deadline FROM queue") == [(NOW + 10 * SECOND,)]
        assert (await store.tick(QUEUE, StallRules(), now=NOW)).next_at == NOW + 10 * SECOND


async def test_nothing_is_left_of_jobs_that_are_gone(store: SQLiteStore, path: Path):
    extras = Extras(start_within=SECOND, dead_letter="dead", schedule="nightly")
    jobs = [new_job(f"{n}", extras=replace(extras, dedupe=DedupeRule(f"{n}"))) for n in range(4)]
    await store.add([jobs], now=NOW)
    await claim_one(store)
    await store.remove(QUEUE, ["0", "1"], force=True, now=NOW)
    await store.cancel(QUEUE, ["2"], now=NOW)
    while (await store.obliterate(QUEUE, now=NOW)).more:
        pass

    assert [rows(path, f"SELECT * FROM {table}") for table in ("job", "deadline", "held_key", "schedule")] == [[]] * 4


class TestValuesThatNoColumnTakes:
    @pytest.mark.parametrize("number", [1, 3])
    async def test_such_a_deadline_is_refused_and_nothing_is_stored(self, store: SQLiteStore, number: int):
        """It is not taken for an id that exists."""
        late = Extras(start_by=2**63)
        jobs = [replace(job, extras=late) for job in new_jobs(number)]
        with pytest.raises(StoreError):
            await store.add([jobs], now=NOW)

        assert await store.get(QUEUE, [job.id for job in jobs]) == [None] * number
        assert (await store.count(QUEUE))["waiting"] == 0
        assert await entries(store) == []
