"""Connections that break, hang and come back."""

from __future__ import annotations

import asyncio
import signal

import pytest
from psycopg import AsyncConnection

from ropeway.errors import StoreBusy, StoreUnavailable
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.link import Link
from ropeway.testing.arrange import add, read
from ropeway.testing.conformance.listen import calm
from ropeway.testing.factories import NOW, QUEUE, claim_request, complete, new_job, new_jobs
from tests.patience import PATIENCE
from tests.stores.databases import new_schema, shared_database
from tests.stores.network import proxied

from .conftest import OpenStore, StartDatabase


async def test_a_connection_cut_while_idle_is_made_anew_and_nobody_hears_of_it(
    start_database: StartDatabase, open_store: OpenStore
):
    server = start_database()
    store = open_store(server.url())
    await add(store, new_job("a"))
    ended = await _ending(store)
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ropeway'")
    await ended

    assert (await read(store, "a")).state == "waiting"


async def test_a_listener_whose_connection_was_cut_hears_what_it_missed(
    start_database: StartDatabase, open_store: OpenStore
):
    server = start_database()
    store, other = open_store(server.url()), open_store(server.url())
    await other.open()
    listener = store.listen("jobs", [QUEUE])
    await calm(listener)
    waiting = asyncio.create_task(listener.wait(PATIENCE))

    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'ropeway' AND query ~ 'listen|has_work'"
    )
    await add(other, new_job())

    assert await waiting
    listener.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
async def test_jobs_survive_a_server_that_stops_and_comes_back(
    start_database: StartDatabase, open_store: OpenStore, how: signal.Signals
):
    server = start_database(fsync="on")
    store = open_store(server.url())
    await add(store, *new_jobs(10))
    settled = await store.settle(QUEUE, [], claim_request(5, token="t"), now=NOW)
    assert settled.claimed is not None
    held = settled.claimed.jobs[0]

    ended = await _ending(store)
    await asyncio.to_thread(server.stop, how)
    await ended
    calling = asyncio.create_task(store.settle(QUEUE, [complete(held)], claim_request(5, token="u"), now=NOW))
    await asyncio.to_thread(server.start)
    again = await calling

    assert [answer.verdict for answer in again.answers] == ["done"]
    counts = await store.count(QUEUE)
    assert (counts["waiting"], counts["active"], counts["completed"]) == (0, 9, 1)


async def test_a_server_that_does_not_answer_is_given_up_after_its_time(open_store: OpenStore):
    async with proxied(shared_database()) as proxy:
        store = open_store(proxy.url(schema=new_schema(), timeout="1"))
        await add(store, new_job())
        proxy.swallow_answers()

        with pytest.raises(StoreUnavailable, match="no answer within 1 s"):
            await store.count(QUEUE)


async def test_nobody_there_is_said_at_once(open_store: OpenStore):
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await open_store("postgresql://127.0.0.1:1/postgres").open()


async def test_a_cancelled_call_leaves_no_foreign_answer(store: PostgresStore):
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


async def test_a_session_that_forgot_what_was_prepared_is_told_again(store: PostgresStore):
    await add(store, new_job("a"))
    await _link(store).run("DEALLOCATE ALL")

    assert (await read(store, "a")).state == "waiting"


async def test_a_timeout_of_the_administrator_is_waited_out(store: PostgresStore):
    await add(store, new_job("a"))
    await _link(store).run("SET lock_timeout = '50ms'")
    other = await _another(store)
    await _lock_waiting(other, store)

    cancelling = asyncio.create_task(store.cancel(QUEUE, ["a"]))
    await asyncio.sleep(0.1)
    await other.close()

    assert [answer.verdict for answer in await cancelling] == ["done"]


async def test_a_timeout_that_never_ends_is_told(store: PostgresStore):
    await add(store, new_job("a"))
    await _link(store).run("SET lock_timeout = '20ms'")
    async with await _another(store) as connection:
        await _lock_waiting(connection, store)

        with pytest.raises(StoreBusy, match="lock timeout"):
            await store.cancel(QUEUE, ["a"])


def _link(store: PostgresStore) -> Link:
    [link, *_] = store._executor.resources().pool._links
    return link


async def _another(store: PostgresStore) -> AsyncConnection:
    return await AsyncConnection.connect(store._target.conninfo)


async def _lock_waiting(connection: AsyncConnection, store: PostgresStore) -> None:
    await connection.execute(f"SELECT FROM {store._target.schema}.waiting FOR UPDATE".encode())


async def _ending(store: PostgresStore) -> asyncio.Task[object]:
    """Ends when the handle knows that its connections have ended."""
    links = store._executor.resources().pool._links
    return asyncio.create_task(asyncio.wait([asyncio.create_task(link.ended.wait()) for link in links]))
