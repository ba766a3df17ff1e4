"""Pausing a queue or a name, and limiting how many jobs run at once."""

from __future__ import annotations

import pytest

from ropeway import Queue
from ropeway.store.contract import Store
from ropeway.testing.arrange import claim

pytestmark = pytest.mark.every_store


async def claimable(queue: Queue, limit: int = 10) -> list[str]:
    return [job.name for job in await claim(queue.store, limit, now=await queue.store.clock(), queue=queue.name)]


async def test_a_paused_queue_gives_out_nothing_until_it_is_resumed(queue: Queue):
    await queue.add("send")
    await queue.pause()
    assert (await queue.settings()).paused
    assert await claimable(queue) == []
    await queue.resume()
    assert not (await queue.settings()).paused
    assert await claimable(queue) == ["send"]


async def test_jobs_can_be_added_to_a_paused_queue(queue: Queue):
    await queue.pause()
    assert (await queue.add("send")).created


async def test_a_paused_name_is_skipped_and_others_are_not(queue: Queue):
    await queue.add_many(["send", "post"])
    await queue.pause("send")
    assert (await queue.settings()).paused_names == ("send",)
    assert await claimable(queue) == ["post"]
    await queue.resume("send")
    assert (await queue.settings()).paused_names == ()
    assert await claimable(queue) == ["send"]


async def test_a_pause_is_the_stores_and_outlives_the_object(queue: Queue, store: Store):
    await queue.pause()
    assert (await Queue(queue.name, store=store).settings()).paused


async def test_resuming_the_queue_does_not_resume_its_names(queue: Queue):
    await queue.pause()
    await queue.pause("send")
    await queue.resume()
    assert (await queue.settings()).paused_names == ("send",)


async def test_a_pause_and_its_end_are_announced_once(queue: Queue):
    for _ in range(2):
        await queue.pause()
    await queue.pause("send")
    for _ in range(2):
        await queue.resume()
    await queue.resume("send")
    events = [event async for event in _kept(queue)]
    assert events == [("paused", {}), ("paused", {"name": "send"}), ("resumed", {}), ("resumed", {"name": "send"})]


async def _kept(queue: Queue):
    await queue.add("end")
    async for event in queue.events("start"):
        if event.name == "added":
            return
        yield event.name, event.data


async def test_a_queue_knows_whether_its_global_limit_is_reached(queue: Queue):
    await queue.add_many(["send"] * 3)
    assert not await queue.is_maxed()
    await queue.set_global_concurrency(2)
    assert not await queue.is_maxed()
    await claimable(queue)
    assert await queue.is_maxed()
    await queue.set_global_concurrency(None)
    assert not await queue.is_maxed()


async def test_no_more_jobs_are_active_than_the_global_limit_allows(queue: Queue):
    await queue.set_global_concurrency(2)
    await queue.add_many(["send"] * 5)
    assert len(await claimable(queue)) == 2
    assert len(await claimable(queue)) == 0
    await queue.set_global_concurrency(3)
    assert len(await claimable(queue)) == 1
    await queue.set_global_concurrency(None)
    assert (await queue.settings()).max_active is None
    assert len(await claimable(queue)) == 2
