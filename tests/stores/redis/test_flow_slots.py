"""Flows whose queues are in several slots of a cluster: what crashes leave is delivered by ticks, once in effect."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ropeway.job.flows import CHILD_NOT_ADDED
from ropeway.job.record import JobRecord, NewJob
from ropeway.job.retention import Retention
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.flow_slots import parts_of
from ropeway.testing.arrange import claim, claim_one, events_of, is_gone, read
from ropeway.testing.conformance.flow_actions import awaiting, children_of, give_children, state_of
from ropeway.testing.factories import NOW, QUEUE, complete, fail, new_flow, new_job
from tests.stores.servers import new_prefix, shared_cluster

from .conftest import OpenStore
from .test_outbox import AWAY, Died, before, die, tick

FAR: Final = "barrels"


@pytest.fixture
def url() -> str:
    return shared_cluster().url(new_prefix())


@pytest.fixture
def store(open_store: OpenStore, url: str) -> RedisStore:
    return open_store(url)


@pytest.fixture
def other(open_store: OpenStore, url: str) -> RedisStore:
    """The handle of a process that dies."""
    return open_store(url)


def flow() -> list[NewJob]:
    return new_flow(new_job("p"), new_job("a", queue=AWAY), new_job("b", queue=AWAY))


async def add(store: RedisStore, *bundle: NewJob) -> list[str]:
    [answers] = await store.add([bundle], now=NOW)
    return [answer.verdict for answer in answers]


async def finish(store: RedisStore, jobs: list[JobRecord]) -> None:
    for job in jobs:
        await store.settle(job.queue, [complete(job, "1")], now=NOW)


async def test_a_flow_is_stored_at_once_if_nothing_goes_wrong(store: RedisStore):
    assert await add(store, *flow()) == ["created"] * 3

    await finish(store, await claim(store, 10, queue=AWAY))

    assert (await claim_one(store)).id == "p"


@pytest.mark.parametrize("step", ["receive", "sent"])
async def test_children_are_delivered_once_when_the_producer_dies(store: RedisStore, other: RedisStore, step: str):
    before(other, step, die)
    with pytest.raises(Died):
        await add(other, *flow())
    assert (await read(store, "p")).state == "waiting-children"

    await tick(store)
    await finish(store, await claim(store, 10, queue=AWAY))
    await tick(store)

    assert await claim(store, 10, queue=AWAY) == []
    assert await state_of(store, "p") == "waiting"


async def test_an_add_that_is_repeated_finds_the_flow(store: RedisStore, other: RedisStore):
    before(other, "receive", die)
    with pytest.raises(Died):
        await add(other, *flow())

    assert await add(store, *flow()) == ["found"] * 3
    await tick(store)
    jobs = await claim(store, 10, queue=AWAY)
    for job in jobs:
        await store.settle(AWAY, [complete(job, keep=Retention(count=0))], now=NOW)

    assert [job.id for job in jobs] == ["a", "b"]
    assert await add(store, *flow()) == ["found"] * 3
    assert await claim(store, 10, queue=AWAY) == []


async def test_two_producers_that_add_the_same_flow_store_it_once(store: RedisStore, other: RedisStore):
    async def add_it_meanwhile() -> None:
        # After the other has looked, before it stores.
        assert await add(store, *flow()) == ["created"] * 3
        await finish(store, await claim(store, 10, queue=AWAY))

    calls = other._executor.call
    seen = 0

    async def instead(script: str, keys: tuple[str, ...], *arguments: Any) -> Any:
        nonlocal seen
        seen += script == "add"
        if script == "add" and seen == 2:
            await add_it_meanwhile()
        return await calls(script, keys, *arguments)

    other._executor.call = instead  # type: ignore[method-assign]  # the one way to be between two trips
    assert await add(other, *flow()) == ["found"] * 3

    assert await claim(store, 10, queue=AWAY) == []
    assert await state_of(store, "p") == "waiting"


async def test_no_child_is_there_before_its_parents(store: RedisStore, other: RedisStore):
    root, middle = new_flow(new_job("root"), new_job("middle", queue=AWAY))
    middle, leaf = new_flow(middle, new_job("leaf"))
    before(other, "receive", die)
    with pytest.raises(Died):
        await add(other, root, middle, leaf)
    assert await is_gone(store, "leaf")

    await tick(store)

    await finish(store, await claim(store))
    assert await state_of(store, "middle", AWAY) == "waiting"


def test_parts_are_ordered_by_parents():
    root, one, two = new_flow(new_job("root"), new_job("one", queue=AWAY), new_job("two", queue=FAR))
    one, leaf = new_flow(one, new_job("leaf"))
    two, leaf = new_flow(two, leaf)

    parts = parts_of([root, one, two, leaf])

    assert [(part.queue, part.wave, [job.id for job in part.jobs]) for part in parts] == [
        (QUEUE, 0, ["root"]),
        (AWAY, 1, ["one"]),
        (FAR, 1, ["two"]),
        (QUEUE, 2, ["leaf"]),
    ]


def test_parts_without_a_parent_are_refused():
    _, child = new_flow(new_job("root"), new_job("child", queue=AWAY))

    with pytest.raises(LookupError, match="'child'"):
        parts_of([child])


@pytest.mark.parametrize("step", ["outbox", "receive", "sent"])
async def test_the_end_of_a_child_is_told_once_when_its_worker_dies(store: RedisStore, other: RedisStore, step: str):
    await add(store, *flow())
    first, second = await claim(store, 2, queue=AWAY)
    before(other, step, die)
    with pytest.raises(Died):
        await other.settle(AWAY, [complete(first, "1")], now=NOW)

    for _ in range(2):
        await tick(store)
    assert {id: child.state for id, child in (await children_of(store, "p")).items()} == {
        "a": "completed",
        "b": "pending",
    }
    assert await state_of(store, "p") == "waiting-children"
    await finish(store, [second])

    assert await state_of(store, "p") == "waiting"
    assert await events_of(store, "release") == [("p", {})]


async def test_a_child_whose_id_exists_on_delivery_has_failed(store: RedisStore, other: RedisStore):
    async def take_the_id() -> None:
        await store.add([[new_job("a", queue=AWAY)]], now=NOW)

    before(other, "receive", take_the_id)
    await add(other, *flow())
    await tick(store)

    parent = await read(store, "p")
    assert (parent.state, parent.reason) == ("failed", f"child {AWAY}/a {CHILD_NOT_ADDED}")
    assert (await read(store, "a", AWAY)).parents == ()
    assert await state_of(store, "b", AWAY) == "waiting"


async def test_news_go_up_over_several_slots(store: RedisStore):
    root, middle = new_flow(new_job("root"), new_job("middle", queue=AWAY))
    await add(store, root, *new_flow(middle, new_job("leaf", queue=FAR)))
    held = await claim_one(store, queue=FAR)

    await store.settle(FAR, [fail(held)], now=NOW)

    assert (await read(store, "root")).reason == f"child {FAR}/leaf failed: no luck"


async def test_remove_reaches_descendants_in_other_slots(store: RedisStore):
    root, bad, middle = new_flow(new_job("root"), (new_job("bad"), "remove"), new_job("middle", queue=AWAY))
    await add(store, root, bad, *new_flow(middle, new_job("leaf", queue=FAR)))
    held = await claim_one(store)

    await store.settle(QUEUE, [fail(held)], now=NOW)

    assert [await is_gone(store, *place) for place in (("root",), ("middle", AWAY), ("leaf", FAR))] == [True] * 3


async def test_a_retried_parent_does_not_wait_for_a_child_that_is_gone(store: RedisStore):
    await add(store, *new_flow(new_job("p"), new_job("a", queue=AWAY)))
    held = await claim_one(store, queue=AWAY)
    await store.settle(AWAY, [fail(held, keep=Retention(count=0))], now=NOW)
    reason = (await read(store, "p")).reason

    await store.retry(QUEUE, ["p"], now=NOW)

    assert await state_of(store, "p") == "waiting"
    link = (await children_of(store, "p"))["a"]
    assert (link.state, link.reason) == ("failed", reason)


async def test_a_parent_that_is_found_creates_no_children_in_other_slots(store: RedisStore):
    await add(store, *flow())
    await store.remove(AWAY, ["a"], now=NOW)
    await tick(store)

    assert await add(store, *flow()) == ["found"] * 3
    assert await add(store, *new_flow(new_job("p"), new_job("c", queue=FAR))) == ["found"] * 2

    assert await is_gone(store, "a", AWAY)
    assert await is_gone(store, "c", FAR)
    assert [*await children_of(store, "p")] == ["b"]


async def test_a_job_with_the_id_of_a_child_in_another_slot_is_not_retried_with_the_parent(store: RedisStore):
    await add(store, *new_flow(new_job("p"), new_job("c", queue=AWAY)))
    await store.settle(AWAY, [fail(await claim_one(store, queue=AWAY), keep=Retention(count=0))], now=NOW)
    await add(store, new_job("c", queue=AWAY, data='"other"'))
    await store.cancel(AWAY, ["c"], now=NOW)

    await store.retry(QUEUE, ["p"], now=NOW)
    await tick(store)

    assert await state_of(store, "p") == "waiting"
    assert await state_of(store, "c", AWAY) == "cancelled"
    assert (await children_of(store, "p"))["c"].state == "failed"


async def test_a_job_with_the_id_of_a_child_in_another_slot_is_not_removed_with_the_parent(store: RedisStore):
    await add(store, *new_flow(new_job("p"), new_job("c", queue=AWAY), (new_job("b", queue=FAR), "remove")))
    await store.settle(AWAY, [complete(await claim_one(store, queue=AWAY), keep=Retention(count=0))], now=NOW)
    await add(store, new_job("c", queue=AWAY, data='"other"'))

    await store.cancel(FAR, ["b"], now=NOW)
    await tick(store)

    assert await is_gone(store, "p")
    assert await state_of(store, "c", AWAY) == "waiting"


@pytest.mark.parametrize("step", ["outbox", "receive", "sent"])
async def test_children_at_run_time_are_added_once_when_the_worker_dies(
    store: RedisStore, other: RedisStore, step: str
):
    await store.add([[new_job("p")]], now=NOW)
    held = await claim_one(store)
    before(other, step, die)
    with pytest.raises(Died):
        await give_children(other, held, new_job("a", queue=AWAY))

    assert await give_children(store, held, new_job("a", queue=AWAY)) == "done"
    await store.settle(QUEUE, [awaiting(held)], now=NOW)
    jobs = await claim(store, 10, queue=AWAY)
    await finish(store, jobs)
    await tick(store)

    assert [job.id for job in jobs] == ["a"]
    assert await claim(store, 10, queue=AWAY) == []
    assert await state_of(store, "p") == "waiting"
