"""Jobs that were damaged by hand hold up nobody else."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from ropeway.store.commands import Find
from ropeway.store.values import StallRules
from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.factories import LOCK, NOW, QUEUE, SECOND, claim_request, complete, new_job

DAMAGE = {
    "options that are not JSON": "UPDATE job SET options = '{\"attempts' WHERE id = 'bad'",
    "options of another kind": "UPDATE job SET options = '{\"attempts\": \"many\"}' WHERE id = 'bad'",
    "options of a future version": "UPDATE job SET options = '[\"v2\", 7]' WHERE id = 'bad'",
    "data that is not JSON": "UPDATE job SET data = '{\"to\": ' WHERE id = 'bad'",
    "data that is not text": "UPDATE job SET data = CAST(x'7b22ff22' AS TEXT) WHERE id = 'bad'",
    "options that are not text": "UPDATE job SET options = CAST(x'ff00fe' AS TEXT) WHERE id = 'bad'",
}


@pytest.fixture(params=DAMAGE)
async def damaged(request: pytest.FixtureRequest, store: SQLiteStore, path: Path) -> SQLiteStore:
    await store.add([[new_job("bad"), new_job("good")]], now=NOW)
    other = apsw.Connection(str(path))
    other.execute(DAMAGE[request.param])
    assert other.changes() == 1
    other.close()
    return store


async def test_the_jobs_behind_it_run(damaged: SQLiteStore):
    jobs = (await damaged.claim(claim_request(2), now=NOW)).jobs

    assert [job.id for job in jobs] == ["bad", "good"]
    settled = await damaged.settle(QUEUE, [complete(job) for job in jobs], now=NOW)
    assert [answer.verdict for answer in settled.answers] == ["done", "done"]


async def test_it_can_be_seen(damaged: SQLiteStore):
    page = await damaged.find(Find(QUEUE, ("waiting",)))

    assert [job.id for job in page.jobs] == ["bad", "good"]
    assert None not in await damaged.get(QUEUE, ["bad", "good"])


async def test_it_can_be_cancelled(damaged: SQLiteStore):
    [answer] = await damaged.cancel(QUEUE, ["bad"], now=NOW)

    assert answer.verdict == "done"


async def test_it_can_stall_and_be_given_up(damaged: SQLiteStore):
    await damaged.claim(claim_request(2), now=NOW)

    ticked = await damaged.tick(QUEUE, StallRules(0), now=NOW + LOCK + SECOND)

    assert sorted(ticked.given_up) == ["bad", "good"]


async def test_data_that_is_not_text_never_reads_as_other_data(store: SQLiteStore, path: Path):
    await store.add([[new_job("bad", data='{"pay":"100"}')]])
    other = apsw.Connection(str(path))
    other.execute("UPDATE job SET data = CAST(x'7b22706179223a2231ff30227d' AS TEXT)")
    other.close()

    [job] = (await store.claim(claim_request())).jobs

    with pytest.raises(ValueError, match="JSON"):
        job.read_data()


async def test_a_damaged_entry_leaves_the_others_readable(store: SQLiteStore, path: Path):
    for _ in range(3):
        await store.add([[new_job()]])
    other = apsw.Connection(str(path))
    other.execute("UPDATE event SET body = '[]' WHERE id = (SELECT id FROM event ORDER BY id LIMIT 1 OFFSET 1)")
    other.close()

    page = await store.events(QUEUE)

    assert len(page.entries) == 2
    assert page.gap
