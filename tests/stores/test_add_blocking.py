"""Adding on the calling thread, on the stores that offer it. What signals do to it: tests/client/test_sync_programs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from ropeway.errors import StoreClosed
from ropeway.store.contract import Store
from ropeway.testing.arrange import read
from ropeway.testing.conformance.fixtures import NewHandle
from ropeway.testing.conformance.waiting_claims import begun, waiting_request
from ropeway.testing.factories import QUEUE, claim_request, new_job

pytestmark = pytest.mark.parametrize("new_handle", ["sqlite", "redis"], indirect=True)

THREADS = 6
EACH = 40


@pytest.fixture
async def here(new_handle: NewHandle) -> AsyncIterator[Store]:
    store = new_handle()
    yield store
    await store.close()


def add_blocking(store: Store, *ids: str) -> list[str]:
    adder = store.offers.blocking_adds
    assert adder is not None
    [answers] = adder.add_blocking([[new_job(id) for id in ids]])
    return [answer.verdict for answer in answers]


async def test_it_stores_jobs_as_add_does(here: Store):
    assert await asyncio.to_thread(add_blocking, here, "a", "b") == ["created", "created"]
    assert await asyncio.to_thread(add_blocking, here, "b", "c") == ["found", "created"]
    assert (await read(here, "a")).state == "waiting"
    assert (await here.count(QUEUE))["waiting"] == 3
    assert [entry.entry.what for entry in (await here.events(QUEUE)).entries] == ["add", "add", "duplicated"]


async def test_many_threads_and_a_loop_add_at_once(here: Store):
    def add_some(number: int) -> None:
        for n in range(EACH):
            assert add_blocking(here, f"{number}-{n}") == ["created"]

    threads = [asyncio.to_thread(add_some, number) for number in range(THREADS)]
    awaited = [here.add([[new_job(f"loop-{n}")]]) for n in range(EACH)]
    await asyncio.gather(*threads, *awaited)

    assert (await here.count(QUEUE))["waiting"] == (THREADS + 1) * EACH
    assert len((await here.claim(claim_request(1_000))).jobs) == (THREADS + 1) * EACH


async def test_who_waits_for_jobs_is_served(here: Store):
    waiting = await begun(here, waiting_request())

    await asyncio.to_thread(add_blocking, here, "a")

    assert [job.id for job in (await waiting).jobs] == ["a"]


async def test_a_closed_store_says_so(here: Store):
    await asyncio.to_thread(add_blocking, here, "a")
    await here.close()
    with pytest.raises(StoreClosed):
        await asyncio.to_thread(add_blocking, here, "b")


async def test_nobody_hangs_when_the_store_is_closed_under_threads_that_add(new_handle: NewHandle):
    store = new_handle()
    acknowledged: list[str] = []
    refused: list[StoreClosed] = []
    begun = threading.Barrier(THREADS + 1)

    def add_until_refused(number: int) -> None:
        add_blocking(store, f"{number}-first")
        begun.wait()
        for n in range(100_000):
            try:
                add_blocking(store, f"{number}-{n}")
            except StoreClosed as error:
                refused.append(error)
                return
            acknowledged.append(f"{number}-{n}")

    threads = [threading.Thread(target=add_until_refused, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(begun.wait)
    await store.close()
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert len(refused) == THREADS
    witness = new_handle()
    assert all(await witness.get(QUEUE, acknowledged))
    await witness.close()
