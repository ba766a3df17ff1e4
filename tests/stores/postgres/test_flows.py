"""Parents and children in several transactions at once, and what they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeAlias

import pytest
from msgspec.structs import replace

from ropeway.job.flows import POLICIES, Child, Parent
from ropeway.job.outcomes import Outcome
from ropeway.job.record import JobRecord, NewJob
from ropeway.job.states import FINAL
from ropeway.store.values import JobUpdate, StallRules
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import add, claim, claim_one, events_of, read
from ropeway.testing.factories import NOW, QUEUE, claim_request, complete, fail, new_flow, new_job, postpone, token_of
from tests.stores.databases import DatabaseProcess

from .conftest import Execute, OpenStore, Other

ELSEWHERE: Final = "parcels"
CANCEL: Final = f"SELECT ropeway.cancel('{QUEUE}', ARRAY['a'], NULL, ARRAY[1, 10, NULL, NULL]::bigint[], {NOW})"


async def two_running_children(store: PostgresStore, queue: str = QUEUE) -> dict[str, JobRecord]:
    await store.add([new_flow(new_job("p", queue=queue), new_job("a"), new_job("b"))], now=NOW)
    await store.prepare(QUEUE)
    return {job.id: job for job in await claim(store, 2)}


async def complete_within(other: Other, store: PostgresStore, job: JobRecord) -> None:
    """In a transaction that stays open."""
    answer = await store.join(other.connection).settle(QUEUE, complete(job))
    assert answer.verdict == "done"


def await_children(job: JobRecord) -> Outcome:
    return replace(postpone(job), awaits_children=True)


@pytest.mark.parametrize("is_root_first", [True, False])
async def test_parents_are_told_in_the_order_in_which_their_child_names_them(store: PostgresStore, is_root_first: bool):
    """One of them is removed with the other, unless it has failed before."""
    root, middle = Parent(QUEUE, "root"), Parent(QUEUE, "middle")
    bundle = [
        replace(new_job("root"), children=(Child(QUEUE, "middle"), Child(QUEUE, "leaf", "remove"))),
        replace(new_job("middle"), parents=(root,), children=(Child(QUEUE, "leaf"),)),
        replace(new_job("leaf"), parents=(root, middle) if is_root_first else (middle, root)),
    ]
    await store.add([bundle], now=NOW)

    await store.settle(QUEUE, [fail(await claim_one(store))], now=NOW)

    states = [job and job.state for job in await store.get(QUEUE, ["root", "middle", "leaf"])]
    assert states == [None, None if is_root_first else "failed", "failed"]


class TestAtTheSameMoment:
    @pytest.mark.parametrize("queue", [QUEUE, ELSEWHERE])
    async def test_the_last_two_children_release_their_parent_once(
        self, store: PostgresStore, other: Other, queue: str
    ) -> None:
        jobs = await two_running_children(store, queue)
        await complete_within(other, store, jobs["a"])

        await other.commit_when_waited_for(store.settle(QUEUE, [complete(jobs["b"])], now=NOW))

        assert (await read(store, "p", queue)).state == "waiting"
        assert await events_of(store, "release", queue) == [("p", {})]
        assert (await store.count(queue))["waiting-children"] == 0

    async def test_a_child_whose_end_is_rolled_back_is_still_waited_for(
        self, store: PostgresStore, other: Other
    ) -> None:
        jobs = await two_running_children(store)
        await complete_within(other, store, jobs["a"])
        await other.connection.rollback()

        await store.settle(QUEUE, [complete(jobs["b"])], now=NOW)
        assert (await read(store, "p")).state == "waiting-children"
        await store.settle(QUEUE, [complete(jobs["a"])], now=NOW)

        assert (await read(store, "p")).state == "waiting"

    async def test_a_parent_fails_once_by_two_children(self, store: PostgresStore, other: Other) -> None:
        jobs = await two_running_children(store)
        await other.run(CANCEL)

        await other.commit_when_waited_for(store.settle(QUEUE, [fail(jobs["b"])], now=NOW))

        reason = f"child {QUEUE}/a was cancelled"
        assert await events_of(store, "fail by child") == [("p", {"reason": reason})]
        assert (await store.count(QUEUE))["failed"] == 2

    async def test_a_parent_that_begins_to_wait_sees_what_ended(self, store: PostgresStore, other: Other) -> None:
        await add(store, new_job("p"))
        parent = await claim_one(store)
        child = replace(new_job("a"), parents=(Parent(QUEUE, "p"),))
        update = JobUpdate("p", token_of(parent), children=(Child(QUEUE, "a"),), adds=(child,))
        await store.update(QUEUE, [update], now=NOW)
        await store.prepare(QUEUE)
        await complete_within(other, store, await claim_one(store))

        await other.commit_when_waited_for(store.settle(QUEUE, [await_children(parent)], now=NOW))

        assert (await read(store, "p")).state == "waiting"

    async def test_many_workers_release_each_parent_once(
        self, store: PostgresStore, open_store: OpenStore, url: str
    ) -> None:
        flows = [
            new_flow(new_job(f"p{number}", queue=ELSEWHERE), *(new_job(f"{number}-{child}") for child in range(8)))
            for number in range(20)
        ]
        await store.add(flows, now=NOW)

        async def work(handle: PostgresStore) -> None:
            jobs = await claim(handle, 5)
            while jobs:
                settled = await handle.settle(QUEUE, [complete(job) for job in jobs], claim_request(5), now=NOW)
                assert settled.claimed is not None
                jobs = settled.claimed.jobs

        await asyncio.gather(*(work(open_store(url)) for _ in range(6)))

        released = await events_of(store, "release", ELSEWHERE)
        assert sorted(id for id, _ in released) == sorted(f"p{number}" for number in range(20))
        assert (await store.count(ELSEWHERE))["waiting"] == 20


class TestTransactions:
    async def test_a_flow_is_there_when_the_caller_commits(self, store: PostgresStore, other: Other) -> None:
        await store.prepare(QUEUE)
        flow = new_flow(new_job("p"), (new_job("a"), "ignore"), new_job("b", queue=ELSEWHERE))

        added = await store.join(other.connection).add(flow)
        assert [one.verdict for one in added] == ["created"] * 3
        assert await store.get(QUEUE, ["p", "a"]) == [None, None]
        await other.connection.commit()

        parent = await read(store, "p")
        assert (parent.state, parent.children) == ("waiting-children", 2)
        assert (await read(store, "b", ELSEWHERE)).parents == (Parent(QUEUE, "p"),)
        page = await store.children(QUEUE, "p")
        assert page is not None
        assert [(child.queue, child.id, child.policy) for child in page.children] == [
            (QUEUE, "a", "ignore"),
            (ELSEWHERE, "b", "fail"),
        ]

    async def test_a_flow_that_is_rolled_back_leaves_nothing(
        self, store: PostgresStore, other: Other, execute: Execute
    ) -> None:
        await store.prepare(QUEUE)
        await store.join(other.connection).add(new_flow(new_job("p"), new_job("a")))
        await other.connection.rollback()

        assert execute("SELECT count(*) FROM ropeway.link") == execute("SELECT count(*) FROM ropeway.family") == [(0,)]


_SCANS: Final = """
    SELECT coalesce(sum(seq_scan + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd), 0)::integer
    FROM pg_stat_xact_user_tables
    WHERE schemaname || '.' = 'ropeway.' AND relname IN ('family', 'link', 'held_key', 'schedule', 'mark')
"""


class TestCost:
    async def test_a_plain_job_touches_no_table_of_flows_keys_schedules_or_marks(
        self, store: PostgresStore, other: Other
    ) -> None:
        await store.open()
        no_options = ", ".join(["NULL"] * 12)
        added = f"ARRAY['{QUEUE}'], NULL, NULL, ARRAY['a', 'b'], ARRAY['x', 'x'], ARRAY['1', '1']"
        await other.run(f"SELECT ropeway.add({added}, {', '.join(['NULL'] * 11)})")
        await other.run(f"SELECT ropeway.claim('{QUEUE}', 't', 'w', 2, 1000, NULL, false, false, NULL, NULL, NULL)")
        await other.run(
            f"SELECT ropeway.settle('{QUEUE}', ARRAY['a', 'b'], ARRAY['t', 't'], NULL, 0, 0, {no_options}, "
            "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        )

        assert await other.ask(_SCANS) == 0

    async def test_the_ends_of_many_children_are_counted_at_once(self, store: PostgresStore, other: Other) -> None:
        children = [new_job(f"c{number:04}") for number in range(1_000)]
        await store.add([new_flow(new_job("p"), *children)], now=NOW)
        held = await claim(store, 1_000)
        ids, token = ", ".join(f"'{job.id}'" for job in held), held[0].token

        await other.run(
            f"SELECT ropeway.settle('{QUEUE}', ARRAY[{ids}], array_fill('{token}'::text, ARRAY[1000]), NULL, 1, 1, "
            f"{', '.join(['NULL'] * 22)})"
        )

        updates = "SELECT n_tup_upd::integer FROM pg_stat_xact_user_tables WHERE schemaname || '.' = 'ropeway.'"
        # One that counts down, and one that says that the parent is released.
        assert await other.ask(f"{updates} AND relname = 'family'") == 2
        assert await other.ask(f"{updates} AND relname = 'link'") == 1_000

    async def test_a_child_is_not_searched_among_the_others(
        self, store: PostgresStore, other: Other, execute: Execute
    ) -> None:
        """Also if the tables were analyzed when they were nearly empty."""
        await store.add([new_flow(new_job("first"), new_job("first-child"))], now=NOW)
        await claim_one(store)
        for table in ("job", "family", "link"):
            execute(f"VACUUM ANALYZE ropeway.{table}")
        await store.add([new_flow(new_job("p"), *(new_job(f"c{number:04}") for number in range(3_000)))], now=NOW)
        held = await claim(store, 100)
        ids, token = ", ".join(f"'{job.id}'" for job in held), held[0].token

        await other.run(
            f"SELECT ropeway.settle('{QUEUE}', ARRAY[{ids}], array_fill('{token}'::text, ARRAY[100]), NULL, 1, 1, "
            f"{', '.join(['NULL'] * 22)})"
        )

        looked = "SELECT (seq_tup_read + idx_tup_fetch)::integer FROM pg_stat_xact_user_tables"
        assert await other.ask(f"{looked} WHERE schemaname || '.' = 'ropeway.' AND relname = 'link'") <= 200

    async def test_a_failure_goes_up_a_long_chain_and_a_retry_down(self, store: PostgresStore) -> None:
        chain = [new_job("0")]
        for number in range(1, 1_000):
            chain[-1:] = new_flow(chain[-1], new_job(str(number)))
        await store.add([chain], now=NOW)

        await store.settle(QUEUE, [fail(await claim_one(store))], now=NOW)

        assert (await store.count(QUEUE))["failed"] == 1_000
        await store.retry(QUEUE, ["0"], now=NOW)
        counts = await store.count(QUEUE)
        assert (counts["waiting"], counts["waiting-children"], counts["failed"]) == (1, 999, 0)


Verb: TypeAlias = Callable[[PostgresStore, list[str], Random], Awaitable[object]]
ROOTS: Final = [f"root-{number}" for number in range(6)]
MIDDLES: Final = [f"middle-{number}" for number in range(9)]
LEAVES: Final = [f"leaf-{number}" for number in range(18)]
HANDLES: Final = 6
ROUNDS: Final = 40


def tree(random: Random) -> list[NewJob]:
    middles = [(new_job(id), random.choice(POLICIES)) for id in random.sample(MIDDLES, 2)]
    root, *parents = new_flow(new_job(random.choice(ROOTS)), *middles)
    bundle = [root]
    for parent in parents:
        leaves = [(new_job(id), random.choice(POLICIES)) for id in random.sample(LEAVES, 2)]
        bundle += new_flow(parent, *leaves)
    return bundle


async def _settle(store: PostgresStore, _: list[str], random: Random) -> None:
    jobs = await claim(store, random.randrange(1, 6))
    ways: list[Callable[[JobRecord], Outcome]] = [complete, complete, fail, await_children]
    await store.settle(QUEUE, [random.choice(ways)(job) for job in jobs])


async def _clean_finished(store: PostgresStore) -> None:
    for state in FINAL:
        await store.clean(QUEUE, state)


VERBS: Final[list[Verb]] = [
    *[lambda store, _, random: store.add([tree(random)])] * 4,
    *[_settle] * 6,
    lambda store, ids, _: store.cancel(QUEUE, ids),
    lambda store, ids, _: store.retry(QUEUE, ids),
    lambda store, ids, _: store.remove(QUEUE, ids, force=True),
    lambda store, *_: store.tick(QUEUE, StallRules()),
    lambda store, _, random: store.clean(QUEUE, random.choice(["waiting", "waiting-children", "delayed"])),
    lambda store, *_: _clean_finished(store),
    lambda store, *_: _clean_finished(store),
]


async def _work(store: PostgresStore, random: Random) -> None:
    ids = [*ROOTS, *MIDDLES, *LEAVES]
    for _ in range(ROUNDS):
        await random.choice(VERBS)(store, random.sample(ids, random.randrange(2, 6)), random)


async def test_calls_on_the_same_flows_never_wait_for_each_other_in_a_circle(
    server: DatabaseProcess, open_store: OpenStore
) -> None:
    store = open_store(server.url())
    await store.open()

    await asyncio.gather(*(_work(open_store(server.url()), Random(number)) for number in range(HANDLES)))

    assert "deadlock detected" not in (server.folder / "server.log").read_text()
    assert server.execute(_MISCOUNTED) == []
    assert server.execute(_FORGOTTEN) == []


_MISCOUNTED: Final = """
    SELECT f.id, f.total, f.awaited, f.completed, f.failed, f.cancelled, array_agg(l.policy || ' ' || l.state)
    FROM ropeway.family AS f LEFT JOIN ropeway.link AS l ON l.family = f.id
    GROUP BY f.id
    HAVING (f.total, f.awaited, f.completed, f.failed, f.cancelled) IS DISTINCT FROM (
        count(l.id), count(l.id) FILTER (WHERE l.state = 'pending' OR (l.policy = 'wait' AND l.state <> 'completed')),
        count(l.id) FILTER (WHERE l.state = 'completed'), count(l.id) FILTER (WHERE l.state = 'failed'),
        count(l.id) FILTER (WHERE l.state = 'cancelled')
    )
"""
_FORGOTTEN: Final = """
    SELECT j.id, f.awaited FROM ropeway.job AS j
    JOIN ropeway.later AS w ON w.queue = j.queue AND w.id = j.id AND w.due_at IS NULL
    LEFT JOIN ropeway.family AS f ON f.id = j.family
    WHERE coalesce(f.awaited, 0) = 0
"""
"""Parents that wait though no child is left."""
