"""Who is woken, how often, and how it goes where nothing can be heard."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.stores.postgres import PostgresStore, notifier, scan_starts, wake_connection
from ropeway.testing.arrange import add, claim
from ropeway.testing.conformance.listen import calm, hears
from ropeway.testing.factories import QUEUE, complete, new_flow, new_job, new_jobs
from tests.stores.databases import new_schema, shared_database
from tests.stores.network import proxied

from .conftest import OpenStore
from .pooler_like import PoolerLike


async def test_nobody_is_woken_while_nobody_listens(store: PostgresStore):
    await add(store, *new_jobs(3))

    assert store._executor.resources().notifier._notified_at == {}


async def test_many_adds_at_once_wake_an_idle_listener_and_the_last_is_heard_of(
    store: PostgresStore, open_store: OpenStore, url: str
):
    listener = store.listen("jobs", [QUEUE])
    await calm(listener)
    other = open_store(url)
    taken: list[str] = []

    async def work() -> None:
        while len(taken) < 40:
            jobs = await claim(store, 10)
            taken.extend(job.id for job in jobs)
            if not jobs:
                assert await hears(listener)

    working = asyncio.create_task(work())
    for n in range(40):
        await add(other, new_job(f"job-{n}"))

    await working
    assert sorted(taken) == sorted(f"job-{n}" for n in range(40))
    listener.close()


@pytest.mark.parametrize("queue", [QUEUE, "parcels"])
@pytest.mark.parametrize("may_notify", [False, True])
async def test_a_handle_that_starts_behind_its_last_claim_finds_a_parent_that_another_releases(
    store: PostgresStore,
    open_store: OpenStore,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    queue: str,
    may_notify: bool,
):
    monkeypatch.setattr(scan_starts, "MANY", -1)
    monkeypatch.setattr(scan_starts, "PAUSE", 3600.0)
    monkeypatch.setattr(wake_connection, "CHECKS_AGAIN", ())
    other = open_store(url)
    await store.add([new_flow(new_job("p"), new_job("child", queue=queue)), [new_job("behind")]])
    held = [job for name in {QUEUE, queue} for job in await claim(store, 2, queue=name)]
    listener = store.listen("jobs", [QUEUE])
    assert await hears(listener)  # It is subscribed.
    assert await claim(store, 1) == []
    monkeypatch.setattr(notifier.Notifier, "may_notify", lambda *_: may_notify)

    await other.settle(queue, [complete(job) for job in held if job.id == "child"])

    assert await hears(listener)
    assert [job.id for job in await claim(store, 1)] == ["p"]
    listener.close()


async def test_a_wake_that_had_to_wait_comes_when_the_pause_is_over(store: PostgresStore):
    await add(store, new_job())
    ours = store._executor.resources().notifier
    ours.note([QUEUE], ["+jobs:1"])
    notified_at = ours._notified_at[QUEUE]
    assert not ours.may_notify([QUEUE])

    ours.note([QUEUE], ["-jobs:1"])

    assert ours._sending is not None
    await ours._sending
    assert ours._notified_at[QUEUE] - notified_at >= notifier.INTERVAL
    assert not ours._pending


async def test_a_wake_that_has_to_wait_is_sent_when_its_handle_closes(
    store: PostgresStore, open_store: OpenStore, url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(notifier, "INTERVAL", 60.0)
    await add(store, new_job())
    listener = store.listen("events", [QUEUE])
    assert await hears(listener), "the server knows of it"
    await calm(listener)
    other = open_store(url)
    await other.open()
    resources = other._executor.resources()
    resources.notifier._notified_at[QUEUE] = resources.loop.time()
    await add(other, new_job())
    await calm(listener)

    await other.close()

    assert await hears(listener)
    listener.close()


async def test_behind_a_pooler_jobs_are_found_by_polling(open_store: OpenStore):
    async with proxied(shared_database(), kind=PoolerLike) as proxy:
        store = open_store(proxy.url(schema=new_schema()))
        listener = store.listen("jobs", [QUEUE])

        await add(store, *new_jobs(3))

        assert await hears(listener)
        assert len(await claim(store, 5)) == 3
        assert not any(link.prepares for link in store._executor.resources().pool._links)
        listener.close()


async def test_listening_can_be_turned_off(open_store: OpenStore, url: str):
    store = open_store(f"{url}&listen=off")
    listener = store.listen("jobs", [QUEUE])

    await add(store, new_job())

    assert await hears(listener)
    assert store._executor.resources().wakes._task is None
    listener.close()
