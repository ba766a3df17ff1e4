"""Handles that were in use when their process forked."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.store import ServerStore
from ropeway.testing.arrange import add, claim
from ropeway.testing.conformance.forking import in_a_forked_child
from ropeway.testing.factories import NOW, QUEUE, new_job, new_jobs
from tests.stores.servers import new_prefix, shared_cluster

from .conftest import OpenStore


@pytest.fixture(params=["server", "cluster"])
def store(request: pytest.FixtureRequest, open_store: OpenStore, url: str) -> RedisStore:
    return open_store(url if request.param == "server" else shared_cluster().url(new_prefix()))


async def test_a_handle_that_was_used_before_a_fork_can_be_used_on_both_sides(store: RedisStore):
    await add(store, new_job("before"))

    assert in_a_forked_child(lambda: asyncio.run(_add(store, "child")))
    await _add(store, "parent")

    assert [job.id for job in await claim(store, 5)] == ["before", "child", "parent"]


async def test_children_of_children_have_the_jobs_too(store: RedisStore):
    await add(store, new_job("before"))

    def child() -> None:
        asyncio.run(_add(store, "child"))
        assert in_a_forked_child(lambda: asyncio.run(_add(store, "grandchild")))
        asyncio.run(_add(store, "child again"))

    assert in_a_forked_child(child)

    assert [job.id for job in await claim(store, 5)] == ["before", "child", "grandchild", "child again"]


async def test_answers_to_calls_that_are_under_way_are_the_parents_alone(store: RedisStore):
    await add(store, *new_jobs(20))
    claims = [asyncio.create_task(claim(store, token=f"parent-{n}")) for n in range(10)]
    await asyncio.sleep(0)

    async def claim_in_child() -> None:
        assert len(await claim(store, 10, token="child")) == 10

    assert in_a_forked_child(lambda: asyncio.run(claim_in_child()))
    answers = await asyncio.gather(*claims)

    assert [[job.token for job in jobs] for jobs in answers] == [[f"parent-{n}"] for n in range(10)]
    assert (await store.count(QUEUE))["active"] == 20


async def test_adds_without_a_loop_have_connections_of_their_own_in_the_child(open_store: OpenStore, url: str):
    store = open_store(url)
    assert isinstance(store, ServerStore)
    store.add_blocking([[new_job("before")]], now=NOW)

    def child() -> None:
        for n in range(20):
            store.add_blocking([[new_job(f"child-{n}")]], now=NOW)

    assert in_a_forked_child(child)
    store.add_blocking([[new_job("parent")]], now=NOW)

    assert (await store.count(QUEUE))["waiting"] == 22


async def _add(store: RedisStore, id: str) -> None:
    await store.add([[new_job(id)]], now=NOW)
