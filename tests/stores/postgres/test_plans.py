"""How many rows the server looks at: a plan must not depend on when the tables were last analyzed."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from ropeway.store.commands import Find
from ropeway.stores.postgres import PostgresStore, reading
from ropeway.stores.postgres.statements import in_schema
from ropeway.stores.postgres.target import Target
from ropeway.testing.arrange import add
from ropeway.testing.factories import NOW, QUEUE, new_job, new_jobs

TABLES = ("job", "waiting", "active", "later", "finished")
JOBS = 3_000
PAGE = 500
HELD = 100


@pytest.fixture
async def analyzed_too_early(store: PostgresStore, url: str) -> str:
    """A schema that the server knows with one job in it, and now has many."""
    await add(store, new_job("first"))
    target = Target.from_url(url)
    with psycopg.connect(target.conninfo, autocommit=True) as connection:
        for table in TABLES:
            connection.execute(f"VACUUM ANALYZE {target.schema}.{table}".encode())
    await add(store, *new_jobs(JOBS))
    return url


@pytest.mark.parametrize(
    "call",
    [
        f"find('{QUEUE}', 'waiting', NULL, NULL, {PAGE}, {PAGE}, -1, 0, false, false)",
        f"get('{QUEUE}', ARRAY(SELECT j.id FROM ropeway.job AS j LIMIT {PAGE}))",
    ],
    ids=["find", "get"],
)
def test_jobs_are_looked_up_one_by_one(analyzed_too_early: str, call: str):
    found, looked = ask(analyzed_too_early, f"SELECT count(*) FROM ropeway.{call}")

    assert found == PAGE
    # Itself, where it stands, and what the page or this test read first.
    assert looked <= 4 * PAGE


@pytest.mark.parametrize("query", [{"name": "print"}, {"tag": "rare"}], ids=["name", "tag"])
async def test_a_search_for_a_rare_job_takes_many_short_statements(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, query: dict[str, Any]
):
    monkeypatch.setattr(reading, "STRIDE", 10)
    await add(store, *new_jobs(95), new_job("rare", name="print", tags=("rare",)), *new_jobs(3))

    page = await store.find(Find(QUEUE, ("waiting",), limit=1, **query))

    assert [job.id for job in page.jobs] == ["rare"]
    assert page.next is None


def test_one_look_for_a_rare_tag_passes_no_more_jobs_than_it_may(analyzed_too_early: str):
    find = f"find('{QUEUE}', 'waiting', NULL, 'rare', {PAGE}, {HELD}, -1, 0, false, false)"

    ids, looked = ask(analyzed_too_early, f"SELECT array_agg(id) FROM ropeway.{find}")

    assert ids == [None]
    assert looked <= 2 * HELD


async def test_jobs_are_held_one_by_one(analyzed_too_early: str, store: PostgresStore):
    await store.add([new_jobs(JOBS, delay=1_000)], now=NOW)
    ids = f"ARRAY(SELECT l.id FROM ropeway.later AS l LIMIT {HELD})"

    letters, looked = ask(analyzed_too_early, f"SELECT letters FROM ropeway.promote('{QUEUE}', {ids})")

    assert len(letters) == 2 * HELD
    # Each as often as it is named in what holds and moves it, and never all that stand beside it.
    assert looked <= 10 * HELD < JOBS


async def test_waiting_jobs_are_counted_by_the_index_that_orders_them(analyzed_too_early: str, store: PostgresStore):
    await add(store, *new_jobs(HELD, priority=7), *new_jobs(HELD, priority=-7))

    counts, read = ask(analyzed_too_early, f"SELECT ropeway.count_waiting('{QUEUE}', ARRAY[7, -7, 3])", _READ_BY_INDEX)

    assert counts == [HELD, HELD, 0]
    assert read == {"waiting_in_line": 2 * HELD}


_LOOKED_AT = """
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer FROM pg_stat_xact_user_tables
    WHERE schemaname || '.' = 'ropeway.' AND relname <> 'queue'
"""
_READ_BY_INDEX = """
    SELECT json_object_agg(relname, pg_stat_get_xact_tuples_returned(oid)) FROM pg_class
    WHERE oid IN ('ropeway.waiting'::regclass, 'ropeway.waiting_in_line'::regclass, 'ropeway.waiting_by_name'::regclass)
        AND pg_stat_get_xact_numscans(oid) > 0
"""


def ask(url: str, sql: str, reckon: str = _LOOKED_AT) -> tuple[Any, Any]:
    """What it answers, and how many rows were looked at for that."""
    target = Target.from_url(url)
    with psycopg.connect(target.conninfo) as connection:
        answer = connection.execute(in_schema(sql, target.schema).encode()).fetchone()
        reckoned = connection.execute(in_schema(reckon, target.schema).encode()).fetchone()
    assert answer is not None
    assert reckoned is not None
    return answer[0], reckoned[0]
