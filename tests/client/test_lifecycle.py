"""Opening and closing queues."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from ropeway import Queue, connect
from ropeway.client import portal
from ropeway.errors import StoreClosed
from ropeway.store.contract import Store
from tests.patience import PATIENCE

from .fixtures import MakeQueue
from .tampering import Tampering, tampered


async def test_a_queue_closes_a_store_of_its_own(tmp_path: Path):
    for url in ("memory://", f"sqlite:///{tmp_path}/jobs.db"):
        queue = Queue("letters", url)
        await queue.add("send")
        await queue.close()
        with pytest.raises(StoreClosed):
            await queue.add("send")
        await queue.close()


async def test_a_queue_leaves_a_given_store_open(make_queue: MakeQueue, store: Store):
    async with make_queue() as queue:
        await queue.add("send")
    assert (await queue.counts())["waiting"] == 1
    assert (await make_queue("other").add("send")).created


async def test_a_queue_in_a_block_is_opened_before_and_closed_after_it():
    async with Queue("letters", "memory://") as queue:
        await queue.add("send")
    with pytest.raises(StoreClosed):
        await queue.counts()


def test_making_a_queue_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROPEWAY_URL", raising=False)
    queue = Queue("letters")
    assert "ropeway.db" in repr(queue)
    assert list(tmp_path.iterdir()) == []


async def test_without_a_url_the_environment_decides(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWAY_URL", "memory://from-the-environment")
    async with Queue("letters") as queue, Queue("letters", "memory://from-the-environment") as same:
        await queue.add("send")
        assert (await same.counts())["waiting"] == 1


async def test_queues_on_one_store_share_its_jobs(store: Store):
    one, two = Queue("letters", store=store), Queue("letters", store=store)
    job = await one.add("send")
    found = await two.get(job.id)
    assert found is not None
    assert found.name == "send"


async def test_jobs_in_a_file_outlive_the_queue(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with Queue("letters", url) as queue:
        job = await queue.add("send", {"to": "you"})
    async with Queue("letters", url) as queue:
        found = await queue.get(job.id)
        assert found is not None
        assert found.data == {"to": "you"}


@pytest.mark.every_store
async def test_who_waits_on_a_store_that_is_closed_is_told():
    store = connect("memory://")
    tampering = Tampering()
    job = await Queue("letters", store=tampered(store, tampering)).add("send")
    looked = tampering.answered("get")
    result = asyncio.create_task(job.result())
    await looked
    await store.close()
    with pytest.raises(StoreClosed):
        await asyncio.wait_for(result, PATIENCE)


async def test_who_follows_a_queue_that_is_closed_is_told():
    queue = Queue("letters", "memory://")
    events = queue.events("start")
    await queue.add("send")
    await anext(events)
    await queue.close()
    await anext(events)
    with pytest.raises(StoreClosed):
        await asyncio.wait_for(anext(events), PATIENCE)


@pytest.mark.every_store
async def test_adds_that_gather_on_a_store_that_is_closed_are_told():
    store = connect("memory://")
    tampering = Tampering()
    tampering.before["add"] = lambda *_: store.close()
    queue = Queue("letters", store=tampered(store, tampering))
    errors = await asyncio.gather(*(queue.add("send") for _ in range(3)), return_exceptions=True)
    assert [type(error) for error in errors] == [StoreClosed] * 3


def test_handles_and_queues_say_what_they_are():
    queue = Queue("letters", "memory://")
    assert repr(queue) == "<Queue 'letters' on memory://>"


async def test_a_queue_can_be_opened_again(tmp_path: Path):
    queue = Queue("letters", f"sqlite:///{tmp_path}/ropeway.db")
    async with queue:
        await queue.add("send")
    with pytest.raises(StoreClosed):
        await queue.counts()
    async with queue:
        assert (await queue.counts())["waiting"] == 1
        assert (await asyncio.to_thread(queue.sync.counts))["waiting"] == 1


def test_a_queue_can_be_opened_again_without_a_loop(tmp_path: Path):
    queue = Queue("letters", f"sqlite:///{tmp_path}/ropeway.db")
    for number in range(1, 4):
        with queue.sync as opened:
            opened.add("send")
            assert opened.counts()["waiting"] == number


def test_a_store_that_a_queue_was_moved_to_is_let_go_of():
    queue = Queue("letters", "memory://")
    queue.sync.counts()
    assert portal._portal is not None
    # Also of earlier tests: each goes when its garbage is collected.
    others = set(portal._portal._stores)
    lent: set[Store] = set()
    for _ in range(3):
        with queue.moved_to(connect("memory://")):
            queue.sync.add("send")
            lent |= portal._portal._stores - others
    assert len(lent) == 3
    portal.run(asyncio.sleep(0))
    assert portal._portal._stores.isdisjoint(lent)


def test_loops_that_have_ended_are_forgotten():
    queue = Queue("letters", "memory://")
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def add() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await queue.add("send")

    for _ in range(3):
        asyncio.run(add())
    gc.collect()
    assert [loop() is None for loop in loops] == [True, True, False]
