"""Dedupe keys where calls meet: in other people's transactions, and many at once on the same keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeAlias

import psycopg
import pytest
from msgspec.structs import replace

from ropeway.job.dedupe import MODES
from ropeway.job.instants import LAST_INSTANT
from ropeway.job.record import JobRecord, NewJob
from ropeway.store.values import Added, KeyHolder, ScheduleWrite, StallRules
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import claim, claim_one
from ropeway.testing.factories import (
    ELSEWHERE,
    NOW,
    QUEUE,
    claim_request,
    complete,
    fail,
    keyed,
    new_flow,
    new_job,
    retry,
)
from tests.stores.databases import DatabaseProcess
from tests.stores.waiting import until

from .conftest import Execute, OpenStore
from .test_deadlocks import _NOT_IN_ONE_PLACE, _RECOUNT

HANDLES: Final = 8
ROUNDS: Final = 40
KEYS: Final = [f"key-{number}" for number in range(5)]

Verb: TypeAlias = Callable[[PostgresStore, Random], Awaitable[object]]


class TestTransactions:
    @pytest.mark.parametrize("commits", [True, False])
    @pytest.mark.parametrize("count", [1, 3])
    async def test_an_add_waits_for_the_end_of_one_with_its_key(
        self, store: PostgresStore, execute: Execute, count: int, *, commits: bool
    ) -> None:
        await store.prepare(QUEUE)
        connection = await psycopg.AsyncConnection.connect(store._target.conninfo)
        async with connection:
            inside = store.join(connection)
            assert await inside.add([keyed("key", id="within")]) == [Added("within", "created")]

            others = [keyed(f"other-{number}") for number in range(1, count)]
            beside = asyncio.create_task(store.add([[keyed("key", id="beside"), *others]], now=NOW))
            # Not any lock: tests of other processes wait for locks on the same server.
            blocked = (
                f"SELECT pid FROM pg_stat_activity WHERE {connection.info.backend_pid} = ANY (pg_blocking_pids(pid))"
            )
            await until(lambda: len(execute(blocked)) == 1)
            await (connection.commit() if commits else connection.rollback())

        holder = "within" if commits else "beside"
        [[answer, *_]] = await beside
        assert answer == Added(holder, "deduplicated" if commits else "created")
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder(holder)

    async def test_it_answers_the_job_that_holds_the_key(self, store: PostgresStore) -> None:
        await store.add([[keyed("key", id="holder")]], now=NOW)
        await store.prepare(QUEUE)
        connection = await psycopg.AsyncConnection.connect(store._target.conninfo)
        async with connection:
            added = await store.join(connection).add([keyed("x", id="x"), keyed("key", id="new"), keyed("x", id="y")])

        assert added == [Added("x", "created"), Added("holder", "deduplicated"), Added("x", "deduplicated")]

    async def test_an_outcome_in_a_transaction_frees_the_key_with_its_commit(self, store: PostgresStore) -> None:
        await store.add([[keyed("key", id="holder")]], now=NOW)
        held = await claim_one(store)
        await store.prepare(QUEUE)
        connection = await psycopg.AsyncConnection.connect(store._target.conninfo)
        async with connection:
            done = complete(held)
            await store.join(connection).settle(QUEUE, replace(done, adds=(keyed("key", id="next"),)))
            assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("holder")

        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("next")


async def test_bundles_meet_each_other_where_some_ids_exist(store: PostgresStore):
    """They are then added one by one, and a job may be found before its row is in line."""
    known = new_job("known")
    await store.add([[known]], now=NOW)

    answers = await store.add(
        [[known], [keyed("key", id="a", data="1")], [keyed("key", "keep-last", id="b", data="2")]], now=NOW
    )

    assert [answer for [answer] in answers] == [
        Added("known", "found"),
        Added("a", "created"),
        Added("a", "deduplicated"),
    ]
    assert [job.data for job in await claim(store, 5)] == [known.data, "2"]


async def test_what_a_write_of_a_schedule_removes_has_freed_its_key_for_the_next_write(store: PostgresStore):
    await store.add([[keyed("key", id="old")]], now=NOW)

    _, written = await store.write_schedules(
        QUEUE,
        [ScheduleWrite("a", None, removes=("old",)), ScheduleWrite("b", "1", adds=(keyed("key", id="new"),))],
        now=NOW,
    )

    assert written.added == [Added("new", "created")]
    assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("new")


def _new(random: Random) -> NewJob:
    mode, key = random.choice(MODES), random.choice(KEYS)
    ttl = 1 if mode in ("throttle", "debounce") else 0
    return keyed(key, mode, ttl, data=str(random.random()), delay=ttl if mode == "debounce" else 0)


async def _settle(store: PostgresStore, random: Random) -> None:
    claimed = await store.claim(claim_request(random.randrange(1, 6)))
    ways: list[Callable[[JobRecord], object]] = [complete, fail, retry]
    outcomes = [random.choice(ways)(job) for job in claimed.jobs]
    if outcomes and random.random() < 0.3:
        outcomes[0] = replace(outcomes[0], adds=(_new(random),))  # type: ignore[type-var]
    await store.settle(QUEUE, outcomes, claim_request(2))  # type: ignore[arg-type]


async def _ids(store: PostgresStore, random: Random) -> list[str]:
    holders = [await store.dedupe(QUEUE, key) for key in random.sample(KEYS, 3)]
    ids = [id for hold in holders if hold is not None for id in (hold.id, hold.next) if id is not None]
    return random.sample(ids, len(ids))


async def _cancel(store: PostgresStore, random: Random) -> None:
    await store.cancel(QUEUE, await _ids(store, random))


async def _remove(store: PostgresStore, random: Random) -> None:
    await store.remove(QUEUE, await _ids(store, random), force=True)


async def _write(store: PostgresStore, random: Random) -> None:
    removes = tuple(await _ids(store, random))
    await store.write_schedules(QUEUE, [ScheduleWrite("s", "1", adds=(_new(random), _new(random)), removes=removes)])


async def _add_flow(store: PostgresStore, random: Random) -> None:
    root, child = keyed(random.choice(KEYS), queue=ELSEWHERE), _new(random)
    await store.add([new_flow(root, child)])


VERBS: Final[list[Verb]] = [
    lambda store, random: store.add([[_new(random)]]),
    lambda store, random: store.add([[_new(random)]]),
    lambda store, random: store.add([[_new(random) for _ in range(6)]]),
    lambda store, random: store.add([[_new(random)] for _ in range(6)]),
    _add_flow,
    _settle,
    _settle,
    _settle,
    _cancel,
    _remove,
    _write,
    lambda store, random: store.release_dedupe(QUEUE, random.choice(KEYS)),
    lambda store, _: store.tick(QUEUE, StallRules()),
    lambda store, _: store.claim(claim_request(3)),
]


async def _work(store: PostgresStore, random: Random) -> None:
    for _ in range(ROUNDS):
        await random.choice(VERBS)(store, random)


async def test_calls_on_the_same_keys_never_wait_for_each_other_in_a_circle(
    server: DatabaseProcess, open_store: OpenStore
):
    store = open_store(server.url())
    await store.open()

    await asyncio.gather(*(_work(open_store(server.url()), Random(number)) for number in range(HANDLES)))

    assert "deadlock detected" not in (server.folder / "server.log").read_text()
    assert server.execute(_NOT_IN_ONE_PLACE) == []
    counts = await store.count(QUEUE)
    assert {state: number for state, number in counts.items() if number} == dict(server.execute(_RECOUNT))
    assert server.execute(_HELD_BY_NONE) == []
    assert server.execute(_WAITS_FOR_NONE) == []


_HELD_BY_NONE: Final = """
    SELECT key, holder FROM ropeway.held_key AS k WHERE until IS NULL
        AND NOT EXISTS (SELECT FROM ropeway.waiting AS s WHERE s.queue = k.queue AND s.id = k.holder)
        AND NOT EXISTS (SELECT FROM ropeway.later AS s WHERE s.queue = k.queue AND s.id = k.holder)
        AND NOT EXISTS (SELECT FROM ropeway.active AS s WHERE s.queue = k.queue AND s.id = k.holder)
"""
_WAITS_FOR_NONE: Final = f"""
    SELECT id FROM ropeway.later AS l WHERE due_at = {LAST_INSTANT}
        AND NOT EXISTS (SELECT FROM ropeway.held_key AS k WHERE k.queue = l.queue AND k.next = l.id)
"""
