"""Connections that break, hang and come back."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.errors import StoreClosed, StoreUnavailable
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.conformance.listen import calm, hears
from ropeway.testing.factories import NOW, QUEUE, claim_request, complete, new_job, new_jobs
from tests.stores.doors import Door

from .conftest import OpenStore, StartServer, noticed


async def test_a_connection_cut_while_idle_is_made_anew_and_nobody_hears_of_it(
    store: RedisStore, open_store: OpenStore
):
    await add(store, new_job("a"))
    await open_store(store._target.url)._executor.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    assert (await read(store, "a")).state == "waiting"


async def test_a_listener_whose_connection_was_cut_hears_what_it_missed(store: RedisStore, open_store: OpenStore):
    listener = store.listen("jobs", [QUEUE])
    await calm(listener)
    other = open_store(store._target.url)
    waiting = asyncio.create_task(hears(listener))

    await other._executor.execute("CLIENT", "KILL", "TYPE", "pubsub")
    await add(other, new_job())

    assert await waiting
    listener.close()


async def test_jobs_survive_a_server_that_is_killed_and_comes_back(start_server: StartServer, open_store: OpenStore):
    server = start_server("--appendonly", "yes", "--appendfsync", "always")
    store = open_store(server.url())
    await add(store, *new_jobs(10))
    [held, *_] = await claim(store, 5, token="t")

    server.kill()
    await noticed(store)
    calling = asyncio.create_task(store.settle(QUEUE, [complete(held)], claim_request(5, token="u"), now=NOW))
    server.start()
    settled = await calling

    assert [answer.verdict for answer in settled.answers] == ["done"]
    counts = await store.count(QUEUE)
    assert (counts["waiting"], counts["active"], counts["completed"]) == (0, 9, 1)


async def test_a_server_that_hangs_is_given_up_after_its_time(start_server: StartServer, open_store: OpenStore):
    server = start_server()
    store = open_store(server.url(timeout="0.2"))
    await add(store, new_job())
    await store._executor.execute("CLIENT", "PAUSE", "60000", "ALL")

    with pytest.raises(StoreUnavailable, match=r"0\.2 s"):
        await store.count(QUEUE)


async def test_a_cancelled_call_leaves_no_foreign_answer(store: RedisStore):
    await add(store, *(new_job(f"job-{n}") for n in range(50)))
    calls = [asyncio.create_task(store.get(QUEUE, [f"job-{n}"])) for n in range(50)]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()

    answers = await asyncio.gather(*calls, return_exceptions=True)

    for n, answer in enumerate(answers):
        if not isinstance(answer, BaseException):
            assert [job and job.id for job in answer] == [f"job-{n}"]
    assert [job and job.id for job in await store.get(QUEUE, ["job-7"])] == ["job-7"]


async def test_a_queue_works_again_after_somebody_emptied_the_server(start_server: StartServer, open_store: OpenStore):
    store = open_store(start_server().url())
    await add(store, *new_jobs(2))
    [job] = await claim(store, 1)
    place = (await store.events(QUEUE)).cursor
    await store._executor.execute("FLUSHALL", "SYNC")

    settled = await store.settle(QUEUE, [complete(job)])
    await add(store, new_job("after"))

    assert [answer.verdict for answer in settled.answers] == ["missing"]
    assert [job.id for job in await claim(store, 5)] == ["after"]
    assert await store.queues() == [QUEUE]
    assert (await store.events(QUEUE, place)).gap


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:{port}/0?timeout=60", "redis+cluster://127.0.0.1:{port}?timeout=60"]
)
async def test_a_call_that_waits_for_the_connection_is_told_that_the_handle_was_closed(url: str):
    is_connected = asyncio.Event()

    async def stay_silent(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        is_connected.set()
        await asyncio.Event().wait()

    door = Door(stay_silent)
    door.open()
    store = RedisStore.from_url(url.format(port=door.port))
    calls = [asyncio.create_task(store.count(QUEUE)) for _ in range(3)]
    await is_connected.wait()
    calls[0].cancel()

    await store.close()
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(answer) for answer in answers] == [asyncio.CancelledError, StoreClosed, StoreClosed]
    await door.shut()
