"""Events of an application's own, in the stream of the queue."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from ropeway import Event, InvalidInput, PayloadTooLarge, Queue, Worker
from ropeway.job.events import EVENT_NAMES
from tests.patience import PATIENCE


async def _events(queue: Queue) -> list[Event]:
    return [event async for event in queue.events("start", follow=False)]


async def test_what_is_published_is_an_event_like_others(queue: Queue):
    await queue.publish("imported", {"rows": 3})
    await queue.publish("closed")

    events = await _events(queue)

    assert [(event.name, event.job_id, event.data) for event in events] == [
        ("imported", None, {"rows": 3}),
        ("closed", None, {}),
    ]


@pytest.mark.every_store
async def test_followers_hear_it_at_once_and_in_order(queue: Queue):
    async def follow() -> list[str]:
        names = []
        async with aclosing(queue.events(start)) as events:
            async for event in events:
                names.append(event.name)
                if event.name == "imported":
                    return names
        raise AssertionError("the stream of events ended")

    start = await queue.newest_event()
    following = asyncio.create_task(follow())
    await queue.add("send")
    await queue.publish("imported")

    assert await asyncio.wait_for(following, PATIENCE) == ["added", "waiting", "imported"]


@pytest.mark.every_store
async def test_it_can_be_resumed_from(queue: Queue):
    await queue.publish("one")
    await queue.publish("two")
    [first, second] = await _events(queue)

    assert [event async for event in queue.events(first.id, follow=False)] == [second]


async def test_listeners_of_a_worker_are_not_disturbed_by_it(queue: Queue):
    heard = asyncio.Event()
    worker = Worker(queue, lambda _: None)
    worker.on("paused", lambda _: heard.set())
    async with worker:
        await queue.publish("imported", {"rows": 3})
        await queue.pause()
        await asyncio.wait_for(heard.wait(), PATIENCE)


def test_the_twin_does_the_same(queue: Queue):
    queue.sync.publish("imported", {"rows": 3})
    queue.sync.publish("closed")
    queue.sync.trim_events()

    assert [event.name for event in queue.sync.events("start", follow=False)] == ["closed"]


@pytest.mark.parametrize("name", ["", "x" * 256, "a\nb", 5, None])
async def test_a_name_that_cannot_be_meant_is_refused(queue: Queue, name: Any):
    with pytest.raises(InvalidInput, match="event name"):
        await queue.publish(name)
    assert await _events(queue) == []


async def test_names_of_the_queue_s_own_events_are_refused(queue: Queue):
    for name in EVENT_NAMES:
        with pytest.raises(InvalidInput, match="event name"):
            await queue.publish(name)
    assert await _events(queue) == []


@pytest.mark.parametrize("data", [[1], "text", 5, {"a": object()}, {"a": float("nan")}])
async def test_data_that_is_no_object_of_json_is_refused(queue: Queue, data: Any):
    with pytest.raises(InvalidInput, match="data"):
        await queue.publish("imported", data)
    assert await _events(queue) == []


async def test_data_that_is_too_large_is_refused(queue: Queue):
    with pytest.raises(PayloadTooLarge):
        await queue.publish("imported", {"text": "x" * 65_536})


@pytest.mark.every_store
async def test_events_are_trimmed(queue: Queue):
    for number in range(5):
        await queue.publish(f"event {number}")
    [first, *_] = await _events(queue)

    await queue.trim_events(2)

    assert [event.name for event in await _events(queue)] == ["event 3", "event 4"]
    after = [event.name async for event in queue.events(first.id, follow=False)]
    assert after == ["gap", "event 3", "event 4"]


@pytest.mark.parametrize("keep", [-1, 10_001, 1.5, "2", None])
async def test_a_number_to_keep_that_cannot_be_meant_is_refused(queue: Queue, keep: Any):
    with pytest.raises(InvalidInput, match="keep"):
        await queue.trim_events(keep)
