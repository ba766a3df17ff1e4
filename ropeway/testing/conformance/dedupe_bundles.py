"""Dedupe keys of jobs that are added together, in bulk or in flows."""

from __future__ import annotations

import asyncio

from ...job.dedupe import DedupeRule
from ...job.extras import Extras
from ...store.commands import Find
from ...store.contract import Store
from ...store.values import Added, JobChange, JobUpdate, KeyHolder
from ..arrange import add, claim, claim_one
from ..factories import (
    ELSEWHERE,
    NOW,
    QUEUE,
    SECOND,
    complete,
    keyed,
    new_flow,
    new_job,
)
from .fixtures import NewHandle
from .held_keys import holder, offer


class TestDedupeBundles:
    async def test_a_repeated_add_is_found(self, store: Store) -> None:
        job = keyed("key", id="a", is_fresh=True)
        await offer(store, job)

        assert await offer(store, job) == [Added("a", "found")]

    async def test_a_repeated_add_is_found_when_the_job_has_ended(self, store: Store) -> None:
        job = keyed("key", id="a", is_fresh=True)
        await offer(store, job)
        await store.settle(QUEUE, [complete(await claim_one(store))], now=NOW)

        assert await offer(store, job) == [Added("a", "found")]
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_jobs_of_one_bundle_meet_each_other(self, store: Store) -> None:
        answers = await offer(store, keyed("key", id="a"), new_job("b"), keyed("key", id="c"), keyed("other", id="d"))

        assert answers == [
            Added("a", "created"),
            Added("b", "created"),
            Added("a", "deduplicated"),
            Added("d", "created"),
        ]

    async def test_bundles_of_one_call_meet_each_other(self, store: Store) -> None:
        answers = await store.add([[keyed("key", id="a")], [keyed("key", id="b")]], now=NOW)

        assert answers == [[Added("a", "created")], [Added("a", "deduplicated")]]

    async def test_bundles_of_one_call_meet_each_other_beside_a_conflict(self, store: Store) -> None:
        await add(store, new_job("known", data="1"))
        conflict = new_job("known", data="2", extras=Extras(start_within=SECOND))

        answers = await store.add(
            [[keyed("key", "throttle", SECOND, id="a")], [conflict], [keyed("key", "keep-last", id="b", delay=SECOND)]],
            now=NOW,
        )

        assert [one.verdict for [one] in answers] == ["created", "conflict", "deduplicated"]

    async def test_a_bundle_with_a_conflict_takes_no_key(self, store: Store) -> None:
        await add(store, new_job("known", data="1"))

        answers = await offer(store, keyed("key", "supersede", id="a"), new_job("known", data="2"))

        assert [one.verdict for one in answers] == ["skipped", "conflict"]
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_a_flow_whose_first_job_is_deduplicated_is_not_added(self, store: Store) -> None:
        await holder(store, "waiting")
        child, grandchild = new_flow(new_job("middle", queue=ELSEWHERE), new_job("leaf", queue=ELSEWHERE))
        root, child = new_flow(keyed("key", id="root"), child)

        answers = await offer(store, root, child, grandchild, new_job("beside"))

        assert answers == [
            Added("holder", "deduplicated"),
            Added("middle", "skipped"),
            Added("leaf", "skipped"),
            Added("beside", "created"),
        ]
        assert await store.get(ELSEWHERE, ["middle", "leaf"]) == [None, None]

    async def test_a_flow_holds_the_key_until_its_parent_is_final(self, store: Store) -> None:
        await offer(store, *new_flow(keyed("key", id="root"), new_job("leaf", queue=ELSEWHERE)))

        [answer] = await offer(store, keyed("key"))

        assert answer == Added("root", "deduplicated")

    async def test_of_many_at_once_one_is_added(self, store: Store, new_handle: NewHandle) -> None:
        others = [new_handle() for _ in range(3)]
        jobs = [keyed("key", id=f"job-{number}") for number in range(24)]

        found = await asyncio.gather(
            *([store, *others][number % 4].add([[job]], now=NOW) for number, job in enumerate(jobs))
        )

        answers = [answer for [[answer]] in found]
        [created] = [answer for answer in answers if answer.verdict == "created"]
        assert {answer.id for answer in answers} == {created.id}
        assert (await store.count(QUEUE))["waiting"] == 1
        for other in others:
            await other.close()

    async def test_jobs_of_a_bulk_say_their_keys(self, store: Store) -> None:
        bulk = [keyed(f"{letter}-key", id=f"job-{letter}") for letter in "abcdefo"]
        await offer(store, *bulk)

        found = await store.find(Find(QUEUE, ("waiting",)))
        claimed = await claim(store, len(bulk), token="t")

        expected = [(job.id, job.extras) for job in bulk]
        assert [(job.id, job.extras) for job in found.jobs] == expected
        assert [(job.id, job.extras) for job in claimed] == expected
        assert [(job.id, job.extras) for job in await claim(store, len(bulk), token="t", repeat=True)] == expected

    async def test_jobs_of_a_bulk_hold_their_keys_until_they_end(self, store: Store) -> None:
        ids = ("first", "cancelled", "removed", "superseded", "changed", "progressed", "released", "cleaned")
        await offer(store, *(keyed(f"a {id}", id=id) for id in ids))
        await store.cancel(QUEUE, ["cancelled"], now=NOW)
        await store.remove(QUEUE, ["removed"], now=NOW)
        await offer(store, keyed("a superseded", "supersede", id="new"))
        await store.change(QUEUE, [JobChange("changed", priority=5)], now=NOW)
        await store.update(QUEUE, [JobUpdate("progressed", progress="1")], now=NOW)
        await store.release_dedupe(QUEUE, "a released", now=NOW)

        held = {id: await store.dedupe(QUEUE, f"a {id}", now=NOW) for id in ids}
        assert [id for id, hold in held.items() if hold == KeyHolder(id)] == [
            "first",
            "changed",
            "progressed",
            "cleaned",
        ]
        assert held["superseded"] == KeyHolder("new")
        first = await claim_one(store)
        assert first.extras == Extras(dedupe=DedupeRule("a first"))
        await store.settle(QUEUE, [complete(first)], now=NOW)
        await store.clean(QUEUE, "waiting", now=NOW)

        assert [id for id in ids if await store.dedupe(QUEUE, f"a {id}", now=NOW)] == []

    async def test_a_repeated_bulk_is_found(self, store: Store) -> None:
        bulk = [keyed(f"key-{number}", id=f"job-{number}") for number in range(3)]
        await offer(store, *bulk)

        assert await offer(store, *bulk) == [Added(job.id, "found") for job in bulk]
        other = await offer(store, keyed("key-1", id="x"), keyed("key-9", id="y"))
        assert other == [Added("job-1", "deduplicated"), Added("y", "created")]
