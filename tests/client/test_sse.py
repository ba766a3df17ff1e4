"""A queue's events as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Generator
from typing import Any, NamedTuple

import pytest

from ropeway import Queue, event_stream
from ropeway.client.event_hub import BUFFERED
from ropeway.errors import InvalidDuration, InvalidName, InvalidOption, StoreUnavailable
from tests.patience import PATIENCE

from .tampering import Tampering


class Message(NamedTuple):
    id: str
    type: str
    data: Any


def read(text: bytes) -> Message | str:
    """A message, or the text of anything else."""
    assert text.endswith(b"\n\n")
    fields = dict(line.split(": ", 1) for line in text.decode().split("\n") if line)
    if "data" not in fields:
        return text.decode().strip()
    assert set(fields) == {"id", "event", "data"}
    return Message(fields["id"], fields["event"], json.loads(fields["data"]))


async def take(stream: AsyncGenerator[bytes, None], count: int) -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        return [read(await anext(stream)) for _ in range(count)]


def types(messages: list[Message]) -> list[str]:
    return [message.type for message in messages]


async def begun(queue: Queue, **options: Any) -> AsyncGenerator[bytes, None]:
    """A stream that hears everything from now on."""
    stream = event_stream(queue, **options)
    assert await take(stream, 1) == ["retry: 2000"]
    return stream


@pytest.mark.every_store
async def test_a_snapshot_comes_first_and_then_what_happens(queue: Queue):
    await queue.add("old")
    stream = await begun(queue, snapshot=True)

    [first] = await take(stream, 1)
    job = await queue.add("send")
    added, waiting = await take(stream, 2)

    assert first.type == "snapshot"
    assert first.data["counts"]["waiting"] == 1
    assert first.data["paused"] is False
    assert (added.type, waiting.type) == ("added", "waiting")
    assert (added.data["job_id"], added.data["queue"]) == (job.id, queue.name)
    await stream.aclose()


@pytest.mark.every_store
async def test_a_stream_resumes_after_the_last_event_that_was_seen(queue: Queue):
    stream = await begun(queue)
    await queue.add("first")
    seen, _ = await take(stream, 2)
    await stream.aclose()
    await queue.add("second")

    resumed = await begun(queue, after=seen.id, snapshot=True)
    kept = await take(resumed, 3)
    third = await queue.add("third")
    live = await take(resumed, 2)

    assert types(kept) == ["waiting", "added", "waiting"]
    assert [message.data["job_id"] for message in live] == [third.id, third.id]
    await resumed.aclose()


async def test_an_event_that_was_replayed_is_not_sent_again(queue: Queue):
    stream = event_stream(queue, after="start")
    assert await take(stream, 1) == ["retry: 2000"]
    # Both the replay and the subscription, which began before it, have these.
    await queue.add("one")
    ids = [message.id for message in await take(stream, 2)]
    await queue.add("two")
    ids += [message.id for message in await take(stream, 2)]
    assert len(set(ids)) == 4
    await stream.aclose()


async def test_a_gap_is_told_and_a_snapshot_follows(queue: Queue):
    for _ in range(3):
        await queue.add("old")
    [first, *_] = [event async for event in queue.events("start", follow=False)]
    await queue.trim_events(keep=2)

    resumed = await begun(queue, after=first.id, snapshot=True)
    gap, snapshot, *kept = await take(resumed, 4)

    assert (gap.type, snapshot.type) == ("gap", "snapshot")
    assert snapshot.data["counts"]["waiting"] == 3
    assert types(kept) == ["added", "waiting"]
    await resumed.aclose()


async def test_a_slow_reader_gets_a_gap_and_others_get_everything(queue: Queue):
    slow, quick = await begun(queue, snapshot=True), await begun(queue)
    [before] = await take(slow, 1)
    jobs = BUFFERED
    for _ in range(jobs):
        await queue.add("many")
        assert types(await take(quick, 2)) == ["added", "waiting"]

    gap, snapshot, next_one = await take(slow, 3)

    assert (gap.type, gap.data["data"]["after"]) == ("gap", before.id)
    assert snapshot.data["counts"]["waiting"] == jobs
    assert next_one.type in ("added", "waiting")
    await slow.aclose()
    await quick.aclose()


async def test_a_silent_stream_is_kept_alive_by_comments(queue: Queue):
    stream = await begun(queue, ping=0.01)
    assert await take(stream, 2) == [": ping", ": ping"]
    await queue.pause()
    messages = await take(stream, 1)
    while messages == [": ping"]:
        messages = await take(stream, 1)
    assert types(messages) == ["paused"]
    await stream.aclose()


async def test_events_of_one_job_or_of_some_names(queue: Queue):
    other = await queue.add("other")
    job = await queue.add("mine")
    of_job = await begun(queue, job=job.id, snapshot=True)
    of_names = await begun(queue, names=["cancelled"])
    [snapshot] = await take(of_job, 1)

    await other.cancel()
    await job.cancel()

    assert snapshot.data["job"]["state"] == "waiting"
    [own] = await take(of_job, 1)
    assert (own.type, own.data["job_id"]) == ("cancelled", job.id)
    assert [message.data["job_id"] for message in await take(of_names, 2)] == [other.id, job.id]
    late = await begun(queue, job=job.id, snapshot=True)
    assert (await take(late, 1))[0].data["job"]["state"] == "cancelled"
    for stream in (of_job, of_names, late):
        await stream.aclose()


def tasks_beside_the_store() -> set[asyncio.Task[Any]]:
    """A store keeps connections, and tasks that read from them."""
    return {task for task in asyncio.all_tasks() if "/ropeway/store" not in task.get_coro().cr_code.co_filename}  # type: ignore[union-attr]


async def test_all_streams_share_one_reader_and_leave_nothing_behind(tampered_queue: Queue, tampering: Tampering):
    before = tasks_beside_the_store()
    streams = [await begun(tampered_queue) for _ in range(20)]
    readers = tasks_beside_the_store() - before
    await tampered_queue.add("send")
    for stream in streams:
        assert types(await take(stream, 2)) == ["added", "waiting"]

    for stream in streams:
        await stream.aclose()

    assert len(readers) == 1
    assert tasks_beside_the_store() == before
    assert not tampered_queue.hub._subscriptions


async def test_a_cancelled_reader_leaves_nothing_behind(queue: Queue):
    before = tasks_beside_the_store()
    stream = await begun(queue)
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert tasks_beside_the_store() == before


async def test_an_unavailable_store_ends_every_stream(tampered_queue: Queue, tampering: Tampering):
    async def fail(*_: object) -> None:
        raise StoreUnavailable("memory://", "gone")

    streams = [await begun(tampered_queue) for _ in range(2)]
    tampering.before["events"] = fail
    await tampered_queue.add("send")
    for stream in streams:
        with pytest.raises(StoreUnavailable):
            await take(stream, 3)


async def test_the_sync_twin_is_a_plain_iterator(queue: Queue):
    def first_two() -> list[Any]:
        stream: Generator[bytes, None, None] = event_stream(queue.sync, snapshot=True)
        messages = [read(next(stream)) for _ in range(2)]
        stream.close()
        return messages

    retry, snapshot = await asyncio.to_thread(first_two)
    assert retry == "retry: 2000"
    assert snapshot.type == "snapshot"


async def test_hostile_text_cannot_end_a_message(queue: Queue):
    stream = await begun(queue)
    await queue.publish("news", {"text": "a\n\ndata: {}\r\nevent: fake\u2028"})
    [message] = await take(stream, 1)
    assert (message.type, message.data["data"]) == ("news", {"text": "a\n\ndata: {}\r\nevent: fake\u2028"})
    await stream.aclose()


async def test_a_mistyped_name_is_refused_with_the_nearest_and_where_own_ones_go(queue: Queue):
    with pytest.raises(InvalidOption, match=r"cannot have 'complet': did you mean 'completed'.*`published`"):
        event_stream(queue, names=["failed", "complet"])
    stream = await begun(queue, names=["paused"], published=["complet"])
    await queue.publish("complet", {"n": 1})
    await queue.publish("other")
    await queue.pause()
    assert types(await take(stream, 2)) == ["complet", "paused"]
    await stream.aclose()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"after": "yesterday"}, InvalidOption),
        ({"after": "1/2\nevent: x"}, InvalidOption),
        ({"after": 5}, InvalidOption),
        ({"ping": 0}, InvalidOption),
        ({"ping": -1}, InvalidDuration),
        ({"job": "a b"}, InvalidName),
        ({"names": ["complete"]}, InvalidOption),
        ({"names": "completed"}, InvalidOption),
        ({"names": [5]}, InvalidOption),
        ({"published": ["completed"]}, InvalidName),
        ({"published": ["\n"]}, InvalidName),
        ({"snapshot": "yes"}, InvalidOption),
    ],
)
def test_bad_options_are_refused_before_anything_is_sent(options: Any, error: type[Exception]):
    with pytest.raises(error):
        event_stream(Queue("q", "memory://"), **options)
