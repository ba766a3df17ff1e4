"""Many calls at once on the same jobs, named in opposite orders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeAlias

from ropeway.job.record import JobRecord
from ropeway.store.values import JobUpdate, Lock, StallRules
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.factories import QUEUE, claim_request, complete, fail, new_job, retry
from tests.stores.databases import DatabaseProcess

from .conftest import OpenStore

HANDLES: Final = 8
ROUNDS: Final = 40
IDS: Final = [f"job-{number}" for number in range(12)]

Verb: TypeAlias = Callable[[PostgresStore, list[str], Random], Awaitable[object]]


async def _settle(store: PostgresStore, ids: list[str], random: Random) -> None:
    """Jobs that others may have taken away, or settle too."""
    jobs = [job for job in await store.get(QUEUE, ids) if job is not None and job.token is not None]
    ways: list[Callable[[JobRecord], object]] = [complete, fail, retry]
    outcomes = [random.choice(ways)(job) for job in jobs]
    await store.settle(QUEUE, outcomes, claim_request(3))  # type: ignore[arg-type]


async def _renew(store: PostgresStore, ids: list[str], _: Random) -> None:
    jobs = [job for job in await store.get(QUEUE, ids) if job is not None and job.token is not None]
    await store.renew(QUEUE, [Lock(job.id, job.token or "") for job in jobs], 1)


VERBS: Final[list[Verb]] = [
    lambda store, ids, _: store.add([[new_job(id) for id in ids]]),
    lambda store, ids, _: store.add([[new_job(id, delay=1) for id in ids]]),
    lambda store, _, random: store.claim(claim_request(random.randrange(1, 12))),
    _settle,
    _settle,
    _renew,
    lambda store, ids, _: store.cancel(QUEUE, ids),
    lambda store, ids, _: store.retry(QUEUE, ids),
    lambda store, ids, _: store.promote(QUEUE, ids),
    lambda store, ids, _: store.remove(QUEUE, ids, force=True),
    lambda store, *_: store.tick(QUEUE, StallRules()),
    lambda store, *_: store.clean(QUEUE, "completed"),
    lambda store, *_: store.obliterate(QUEUE, force=True),
    lambda store, *_: store.configure(QUEUE, max_active=6, pause=False),
    lambda store, ids, _: store.update(QUEUE, [JobUpdate(id, progress="1", log=("1", "2"), keep_logs=3) for id in ids]),
    lambda store, ids, _: store.clear_log(QUEUE, ids[0], keep=1),
    lambda store, *_: store.publish(QUEUE, "imported", "{}"),
    lambda store, *_: store.trim_events(QUEUE, keep=5),
    lambda store, ids, _: store.add([[new_job(id, queue=id) for id in ids]]),
]


async def _work(store: PostgresStore, random: Random) -> None:
    for _ in range(ROUNDS):
        ids = random.sample(IDS, random.randrange(2, len(IDS)))
        await random.choice(VERBS)(store, ids, random)


async def test_calls_on_the_same_jobs_never_wait_for_each_other_in_a_circle(
    server: DatabaseProcess, open_store: OpenStore
):
    store = open_store(server.url())
    await store.open()

    await asyncio.gather(*(_work(open_store(server.url()), Random(number)) for number in range(HANDLES)))

    assert "deadlock detected" not in (server.folder / "server.log").read_text()
    assert server.execute(_NOT_IN_ONE_PLACE) == []
    counts = await store.count(QUEUE)
    assert {state: number for state, number in counts.items() if number} == dict(server.execute(_RECOUNT))


_PLACES: Final = """
    SELECT queue, id, 'waiting' AS state FROM ropeway.waiting
    UNION ALL SELECT queue, id, 'active' FROM ropeway.active
    UNION ALL SELECT queue, id, 'delayed' FROM ropeway.later
    UNION ALL SELECT queue, id, state::text FROM ropeway.finished
"""
_NOT_IN_ONE_PLACE: Final = f"""
    SELECT queue, id, job.ord, array_agg(place.state) FROM ropeway.job FULL JOIN ({_PLACES}) AS place USING (queue, id)
    GROUP BY queue, id, job.ord HAVING job.ord IS NULL OR count(place.state) <> 1
"""
_RECOUNT: Final = f"""
    SELECT place.state, count(*) FROM ({_PLACES}) AS place
    JOIN ropeway.queue ON queue.id = place.queue AND queue.name = '{QUEUE}' GROUP BY place.state
"""
