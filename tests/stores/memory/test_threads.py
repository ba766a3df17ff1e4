"""Handles of several threads and event loops on the same jobs."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread

import pytest

from ropeway.job.ids import new_token
from ropeway.store.contract import Store
from ropeway.stores.memory import MemoryStore
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, claim_request, complete, new_job, new_jobs
from tests.patience import PATIENCE


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns as often as they can, so that a step without its lock would be seen to be torn."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


async def test_threads_that_claim_at_once_get_each_job_once(store: MemoryStore, hasty_threads: None):
    threads, jobs = 4, 2_000
    await store.add([new_jobs(jobs)])
    start = Barrier(threads)

    async def work(handle: Store) -> list[str]:
        done = []
        start.wait()
        held = (await handle.claim(claim_request(7, token=new_token()))).jobs
        while held:
            done += [job.id for job in held]
            then = claim_request(7, token=new_token())
            settled = await handle.settle(QUEUE, [complete(job) for job in held], then)
            assert all(answer.verdict == "done" for answer in settled.answers)
            assert settled.claimed is not None
            held = settled.claimed.jobs
        await handle.close()
        return done

    handles = [store.sibling() for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        lists = [*pool.map(lambda handle: asyncio.run(work(handle)), handles)]

    assert Counter(id for ids in lists for id in ids).most_common(1)[0][1] == 1
    assert sum(map(len, lists)) == jobs
    counts = await store.count(QUEUE)
    assert (counts["waiting"], counts["active"], counts["completed"]) == (0, 0, jobs)


async def test_a_wake_crosses_to_the_loop_of_another_thread(store: MemoryStore):
    loop, listens = asyncio.get_running_loop(), asyncio.Event()

    async def hear(handle: Store) -> list[str]:
        listener = handle.listen("jobs", [QUEUE])
        assert await claim(handle) == []
        waiting = asyncio.create_task(listener.wait())
        await asyncio.sleep(0)
        loop.call_soon_threadsafe(listens.set)
        assert await waiting
        return [job.id for job in await claim(handle)]

    other = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(hear(store.sibling()))))
    await listens.wait()
    await add(store, new_job("a"))

    assert await other == ["a"]


def in_a_loop_that_ends(handle: Store, act: Callable[[Store], Awaitable[object]]) -> None:
    """Runs in a thread whose loop is closed afterwards, whatever still waits on it."""

    def run() -> None:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(act(handle))
        loop.close()

    thread = Thread(target=run)
    thread.start()
    thread.join()


async def wait_and_be_left(handle: Store) -> None:
    listener = handle.listen("jobs", [QUEUE])
    waiting = listener.wait()
    # Driven by hand to where it waits: no task is left behind that could complain.
    waiting.__await__().send(None)
    abandoned.append(waiting)


abandoned: list[object] = []


async def test_a_closed_loop_hurts_nobody(store: MemoryStore):
    in_a_loop_that_ends(store.sibling(), wait_and_be_left)

    await add(store, new_job("a"))

    assert [job.id for job in await claim(store)] == ["a"]
    abandoned.clear()


async def test_a_wait_that_the_garbage_collector_ends_inside_a_step_does_not_lock_up(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
):
    in_a_loop_that_ends(store.sibling(), wait_and_be_left)
    assert store._shared is not None
    now = store._shared.clock.now

    def collecting_now() -> int:
        abandoned.clear()
        gc.collect()
        return now()

    # The clock is read when the store's lock is already held.
    monkeypatch.setattr(type(store._shared.clock), "now", lambda _: collecting_now())

    await asyncio.wait_for(store.add([[new_job("a")]]), PATIENCE)

    monkeypatch.undo()
    assert [job.id for job in await claim(store)] == ["a"]


async def test_a_task_that_only_calls_the_store_lets_others_run(store: MemoryStore):
    others_ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(others_ran.set)

    while not others_ran.is_set():
        await store.get(QUEUE, ["a"])
