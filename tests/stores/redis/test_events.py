"""The stream of a queue, whose entries are numbered by their last event, and queues that have nothing else."""

from __future__ import annotations

import pytest

from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, entries
from ropeway.testing.factories import NOW, QUEUE, new_job, new_jobs

from .conftest import OpenStore, StartServer


async def publish(store: RedisStore, *names: str) -> None:
    for name in names:
        await store.publish(QUEUE, name, "{}", now=NOW)


async def names_left(store: RedisStore) -> list[str]:
    return [entry.detail["name"] if entry.detail else entry.what for entry in await entries(store)]


async def test_an_entry_goes_when_all_of_its_events_are_too_much(store: RedisStore):
    await publish(store, "one")
    await add(store, *new_jobs(5))
    await publish(store, "two", "three")

    await store.trim_events(QUEUE, keep=12)
    assert await names_left(store) == ["add", "two", "three"]

    await publish(store, "four")
    await store.trim_events(QUEUE, keep=4)
    assert await names_left(store) == ["two", "three", "four"]


async def test_the_first_entry_of_all_stays_in_part(store: RedisStore):
    await add(store, *new_jobs(5))
    await publish(store, "one")

    await store.trim_events(QUEUE, keep=11)
    assert [len(entry.jobs) for entry in await entries(store)] == [5, 0]

    await store.trim_events(QUEUE, keep=10)
    assert [len(entry.jobs) for entry in await entries(store)] == [4, 0]


async def test_trimming_again_drops_no_more(store: RedisStore):
    await publish(store, "one")
    for _ in range(3):
        await add(store, *new_jobs(5))

    for _ in range(5):
        await store.trim_events(QUEUE, keep=25)

    assert [len(entry.jobs) for entry in await entries(store)] == [2, 5, 5]


async def test_a_reader_from_before_the_first_event_is_told_of_a_gap(store: RedisStore):
    beginning = (await store.events(QUEUE, "now")).cursor
    await publish(store, "one", "two")
    assert not (await store.events(QUEUE, beginning)).gap

    await store.trim_events(QUEUE, keep=1)

    assert (await store.events(QUEUE, beginning)).gap


@pytest.mark.parametrize("keep", [-1, 10**30])
async def test_any_number_may_be_kept(store: RedisStore, keep: int):
    await publish(store, "one", "two")

    await store.trim_events(QUEUE, keep=keep)

    assert await names_left(store) == (["two"] if keep < 0 else ["one", "two"])


async def test_a_queue_that_lost_its_stream_goes_on(store: RedisStore):
    await publish(store, "one")
    await store.obliterate(QUEUE, now=NOW)

    await store.trim_events(QUEUE)
    await publish(store, "two")

    assert await names_left(store) == ["two"]


async def test_a_queue_that_was_published_to_in_an_emptied_server_is_listed_with_its_first_job(
    start_server: StartServer, open_store: OpenStore
):
    url = start_server().url()
    producer, publisher = open_store(url), open_store(url)
    await add(producer, new_job())
    await publish(publisher, "one")
    await producer._executor.execute("FLUSHALL", "SYNC")

    await publish(publisher, "two")
    assert await producer.queues() == []
    await add(producer, new_job())

    assert await producer.queues() == [QUEUE]
