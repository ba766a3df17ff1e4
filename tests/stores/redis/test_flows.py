"""Parents and children in the keys of the store."""

from __future__ import annotations

from uuid import UUID

from ropeway.job.flows import Child, Parent
from ropeway.job.record import NewJob
from ropeway.job.retention import Retention
from ropeway.store.values import JobUpdate
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim, claim_one, read
from ropeway.testing.conformance.flow_actions import awaiting, state_of
from ropeway.testing.factories import NOW, QUEUE, complete, fail, new_flow, new_job, token_of

ONE, TWO = str(UUID(int=2**127 + 12345)), str(UUID(int=67890))


async def keys_of_families(store: RedisStore) -> list[bytes]:
    pattern = f"{store._executor.keys.queue(QUEUE)}:children:*"
    keys: list[bytes] = await store._executor.execute("KEYS", pattern)
    return keys


async def ids_of(store: RedisStore, id: str, limit: int) -> list[str]:
    found: list[str] = []
    after: str | None = None
    while True:
        page = await store.children(QUEUE, id, after=after, limit=limit)
        assert page is not None
        found += [child.id for child in page.children]
        after = page.next
        if after is None:
            return found


async def test_shortened_ids_are_given_back_in_full(store: RedisStore):
    await add(store, *new_flow(new_job(ONE), new_job(TWO)))
    held = await claim_one(store)
    assert held.parents == (await read(store, TWO)).parents == (Parent(QUEUE, ONE),)

    await store.settle(QUEUE, [fail(held)], now=NOW)

    page = await store.children(QUEUE, ONE)
    assert page is not None
    assert [child.id for child in page.children] == [TWO]
    assert (await read(store, ONE)).reason == f"child {QUEUE}/{TWO} failed: no luck"


async def test_plain_jobs_with_tags_and_children_are_told_apart(store: RedisStore):
    parent, child = new_flow(new_job("p", tags=("sum",)), new_job("a", tags=("part",)))
    await add(store, new_job("plain"), parent, child, new_job("tagged", tags=("part",)))

    jobs = await claim(store, 10)
    await store.settle(QUEUE, [complete(job) for job in jobs], now=NOW)

    assert {job.id: (job.tags, job.parents) for job in jobs} == {
        "plain": ((), ()),
        "a": (("part",), (Parent(QUEUE, "p"),)),
        "tagged": (("part",), ()),
    }
    again = await claim_one(store)
    assert (again.id, again.tags, again.children) == ("p", ("sum",), 1)


async def test_many_children_are_listed_in_order_also_those_of_later(store: RedisStore):
    await add(store, new_job("p"))
    held = await claim_one(store)
    numbers = [f"c{number}" for number in range(1_250)]
    for first in (0, 499, 500, 1_000):
        some = numbers[first : first + 501]
        links = tuple(Child(QUEUE, id) for id in some)
        adds: tuple[NewJob, ...] = tuple(new_job(id, parents=(Parent(QUEUE, "p"),)) for id in some)
        update = JobUpdate("p", token_of(held), children=links, adds=adds)
        [answer] = await store.update(QUEUE, [update], now=NOW)
        assert answer.verdict == "done"
    await store.remove(QUEUE, ["c500"], now=NOW)
    expected = [id for id in numbers if id != "c500"]

    assert await ids_of(store, "p", 1_000) == await ids_of(store, "p", 7) == expected
    await store.settle(QUEUE, [awaiting(held)], now=NOW)
    while jobs := await claim(store, 400):
        if jobs[0].id == "p":
            break
        await store.settle(QUEUE, [complete(job) for job in jobs], now=NOW)
    assert [job.id for job in jobs] == ["p"]


async def test_two_updates_of_one_call_add_the_children_of_both(store: RedisStore):
    await add(store, new_job("p"), new_job("q"))
    held = await claim(store, 2)
    updates = [
        JobUpdate(
            job.id,
            token_of(job),
            children=(Child(QUEUE, f"{job.id}-1"),),
            adds=(new_job(f"{job.id}-1", parents=(Parent(QUEUE, job.id),)),),
        )
        for job in held
    ]

    await store.update(QUEUE, updates, now=NOW)

    assert [job.id for job in await claim(store, 5)] == ["p-1", "q-1"]


async def test_ten_thousand_children(store: RedisStore):
    await store.add([new_flow(new_job("p"), *(new_job(f"c{number}") for number in range(10_000)))], now=NOW)
    assert (await read(store, "p")).children == 10_000

    while (await store.clean(QUEUE, "waiting", limit=1_000, now=NOW)).more:
        pass

    assert await state_of(store, "p") == "waiting"
    assert (await read(store, "p")).children == 0


async def test_a_chain_of_a_thousand_fails_in_one_step(store: RedisStore):
    chain = [new_job("0")]
    for number in range(1, 1_000):
        chain[-1:] = new_flow(chain[-1], new_job(str(number)))
    await store.add([chain], now=NOW)

    await store.settle(QUEUE, [fail(await claim_one(store))], now=NOW)

    assert (await store.count(QUEUE))["failed"] == 1_000
    await store.retry(QUEUE, ["0"], now=NOW)
    assert (await store.count(QUEUE))["waiting-children"] == 999
    assert (await claim_one(store)).id == "999"


async def test_families_go_with_their_parents(store: RedisStore):
    for number in range(3):
        await add(store, *new_flow(new_job(f"p{number}"), new_job(f"c{number}")))
    assert len(await keys_of_families(store)) == 3
    await store.settle(QUEUE, [complete(job) for job in await claim(store, 3)], now=NOW)
    held = await claim_one(store)

    await store.settle(QUEUE, [complete(held, keep=Retention(count=0))], now=NOW)
    await store.remove(QUEUE, ["p1"], now=NOW)
    assert len(await keys_of_families(store)) == 1
    await store.obliterate(QUEUE, now=NOW)

    assert await keys_of_families(store) == []
