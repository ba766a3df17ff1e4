"""Following what happens in a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from ropeway import Event, Queue
from ropeway.errors import InvalidOption
from ropeway.store.contract import Store
from ropeway.testing.arrange import claim
from ropeway.testing.factories import complete, fail, retry
from tests.patience import PATIENCE

from .tampering import Tampering

pytestmark = pytest.mark.every_store

Following: TypeAlias = tuple[AsyncGenerator[Event, None], asyncio.Task[Event]]
Follow: TypeAlias = Callable[..., Awaitable[Following]]


async def take(events: AsyncGenerator[Event, None], count: int) -> list[Event]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


def told(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.name, event.job_id) for event in events]


@pytest.fixture
def queue(tampered_queue: Queue) -> Queue:
    return tampered_queue


@pytest.fixture
def follow(queue: Queue, tampering: Tampering) -> Follow:
    async def follow(after: str = "now") -> Following:
        """Waits for the first event already, so that none is missed."""
        begun = tampering.answered("events")
        events = queue.events(after)
        first = asyncio.create_task(anext(events))
        await begun
        return events, first

    return follow


async def test_events_without_following_end_with_the_newest(queue: Queue):
    first, second = await queue.add("first"), await queue.add("second")

    kept = [event async for event in queue.events("start", follow=False)]
    later = [event async for event in queue.events(kept[1].id, follow=False)]

    assert told(kept) == [("added", first.id), ("waiting", first.id), ("added", second.id), ("waiting", second.id)]
    assert later == kept[2:]


async def test_events_are_heard_as_they_happen(queue: Queue, follow: Follow):
    old = await queue.add("old")
    events, first = await follow()
    job = await queue.add("send", delay=60)
    await job.promote()
    await old.cancel("not needed")
    heard = [await asyncio.wait_for(first, PATIENCE), *await take(events, 3)]
    assert told(heard) == [("added", job.id), ("delayed", job.id), ("waiting", job.id), ("cancelled", old.id)]
    assert heard[0].data["name"] == "send"
    assert heard[3].data == {"reason": "not needed", "prev": "waiting"}
    assert all(event.queue == queue.name and event.at > 0 for event in heard)
    await events.aclose()


async def test_the_whole_life_of_a_job_is_told_in_order(queue: Queue, store: Store):
    job = await queue.add("send", attempts=2)
    now = await store.clock()
    [record] = await claim(store, now=now, worker="w")
    await queue.report_progress(job.id, 50)
    await store.settle(queue.name, [retry(record, reason="bad luck")])
    [record] = await claim(store, now=now)
    await store.settle(queue.name, [fail(record, exhausted=True)])
    await job.retry()
    [record] = await claim(store, now=now)
    await store.settle(queue.name, [complete(record, '{"a":1}')])
    await job.remove()
    heard = await take(queue.events("start"), 15)
    assert [event.name for event in heard] == [
        *("added", "waiting"),
        "active",
        "progress",
        *("retrying", "waiting"),
        "active",
        *("failed", "retries-exhausted"),
        "drained",
        "waiting",
        "active",
        "completed",
        "drained",
        "removed",
    ]
    details = {event.name: event.data for event in heard}
    assert details["active"]["worker"]
    assert details["progress"] == {"progress": 50}
    assert details["retrying"] == {"reason": "bad luck", "attempt": 1, "delay": 0}
    assert details["failed"] == {"reason": "no luck", "attempt": 2, "exhausted": True}
    assert details["completed"] == {"result": {"a": 1}}
    assert details["removed"] == {"prev": "completed"}


async def test_every_event_can_be_resumed_from_even_in_the_middle_of_an_entry(queue: Queue):
    await queue.add_many(["a", "b", "c"])
    await queue.pause()
    everything = await take(queue.events("start"), 7)
    assert [event.name for event in everything] == ["added", "waiting"] * 3 + ["paused"]
    assert len({event.id for event in everything}) == 7
    for number, event in enumerate(everything[:-1], 1):
        events = queue.events(event.id)
        assert await take(events, 7 - number) == everything[number:]
        await events.aclose()


async def test_resuming_from_the_last_event_waits_for_the_next(queue: Queue, follow: Follow):
    await queue.add("send")
    *_, last = await take(queue.events("start"), 2)
    events, first = await follow(last.id)
    assert not first.done()
    job = await queue.add("send")
    assert (await asyncio.wait_for(first, PATIENCE)).job_id == job.id
    await events.aclose()


async def test_events_after_the_newest_are_all_that_follow_it(queue: Queue):
    for name in ("before", "meanwhile"):
        newest = await queue.newest_event()
        assert await all_after(queue, newest) == []
        job = await queue.add(name)
        assert await all_after(queue, newest) == [("added", job.id), ("waiting", job.id)]


async def all_after(queue: Queue, place: str) -> list[tuple[str, str | None]]:
    return [(event.name, event.job_id) async for event in queue.events(after=place, follow=False)]


@pytest.mark.parametrize("after", [None, 5, "a/b", "1/2/3"])
async def test_a_place_that_is_no_events_id_is_refused(queue: Queue, after: Any):
    with pytest.raises(InvalidOption, match="start"):
        await anext(queue.events(after))


async def test_a_place_of_another_store_is_a_gap_and_what_is_kept_follows(queue: Queue):
    job = await queue.add("send")
    gap, *rest = await take(queue.events("elsewhere-17/0"), 3)
    assert (gap.name, gap.job_id, gap.data) == ("gap", None, {"after": "elsewhere-17"})
    assert told(rest) == [("added", job.id), ("waiting", job.id)]


async def test_events_that_went_unread_are_announced_as_a_gap(queue: Queue):
    await queue.add_many(["a", "b"])
    await queue.pause()
    seen, *_ = await take(queue.events("start"), 1)
    await queue.obliterate()
    job = await queue.add("c")
    gap, *rest = await take(queue.events(seen.id), 3)
    assert gap.name == "gap"
    assert gap.at == rest[0].at
    assert told(rest) == [("added", job.id), ("waiting", job.id)]
    assert await take(queue.events(gap.id), 3) == [gap, *rest], "nothing behind the gap is skipped"


async def test_events_of_a_batch_that_went_unread_are_announced_as_a_gap(queue: Queue):
    jobs = await queue.add_many(["a", "b", "c", "d"])
    events = await take(queue.events("start"), 8)
    await queue.trim_events(keep=4)

    gap, *rest = await take(queue.events(events[1].id), 5)

    assert (gap.name, gap.at) == ("gap", events[0].at)
    assert rest == events[4:]
    assert {event.job_id for event in rest} == {jobs[2].id, jobs[3].id}
    assert await take(queue.events(gap.id), 5) == [gap, *rest], "nothing behind the gap is skipped"
    assert await take(queue.events(events[3].id), 4) == rest
    assert await take(queue.events(events[5].id), 2) == events[6:]


async def test_each_follower_hears_everything(queue: Queue, follow: Follow):
    followers = [await follow() for _ in range(3)]
    job = await queue.add("send")
    for events, first in followers:
        assert (await asyncio.wait_for(first, PATIENCE)).job_id == job.id
        await events.aclose()


async def test_a_follower_hears_nothing_of_other_queues(queue: Queue, store: Store, follow: Follow):
    events, first = await follow()
    await Queue("other", store=store).add("send")
    job = await queue.add("send")
    assert (await asyncio.wait_for(first, PATIENCE)).job_id == job.id
    await events.aclose()


async def test_many_events_are_all_heard(queue: Queue):
    jobs = await queue.add_many(("send", n) for n in range(1_200))
    for number in range(0, 1_200, 100):
        await queue.cancel(jobs[number].id)
    events = await take(queue.events("start"), 2 * 1_200 + 12)
    assert [event.job_id for event in events if event.name == "added"] == [job.id for job in jobs]
    assert [event.job_id for event in events if event.name == "cancelled"] == [job.id for job in jobs[::100]]
