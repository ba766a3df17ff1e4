"""A job costs the same among a thousand others as among a hundred thousand: counted in calls, not in seconds."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from itertools import count
from types import FrameType
from typing import Any, TypeAlias

import pytest

from ropeway.job.retention import FOREVER
from ropeway.store.commands import Find
from ropeway.store.values import StallRules
from ropeway.stores.memory import MemoryStore
from ropeway.stores.memory.verbs.find import STRIDE
from ropeway.testing.arrange import claim
from ropeway.testing.factories import (
    DAY,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    fail,
    new_job,
    new_jobs,
)

from .audit import queue_data

FEW, MANY = 1_000, 60_000
Fill: TypeAlias = Callable[[MemoryStore, int], Awaitable[object]]


async def calls_of(act: Awaitable[object]) -> int:
    """How many functions, in Python or in C, were called."""
    calls = 0

    def note(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        await act
    finally:
        sys.setprofile(None)
    return calls


async def wait(store: MemoryStore, size: int, **job: Any) -> None:
    for _ in range(size // 1_000):
        await store.add([new_jobs(1_000, **job)], now=NOW)


async def wait_by_priority(store: MemoryStore, size: int) -> None:
    await store.add([[new_job(priority=number % 97) for number in range(size)]], now=NOW)


async def wait_behind_names_of_others(store: MemoryStore, size: int) -> None:
    await wait(store, size, name="unwanted")
    await store.configure(QUEUE, pause_names=["unwanted"], now=NOW)
    await wait(store, FEW)
    # The first claim that must look by name sorts the names once.
    await claim(store, names=("send",))


async def delay(store: MemoryStore, size: int) -> None:
    await wait(store, size, delay=DAY)
    await wait(store, FEW)


async def finish(store: MemoryStore, size: int) -> None:
    for _ in range(size // 1_000):
        await store.add([new_jobs(1_000)], now=NOW)
        jobs = await claim(store, 1_000)
        await store.settle(QUEUE, [complete(job, keep=FOREVER) for job in jobs], now=NOW)
    await wait(store, FEW)


async def expire_later(store: MemoryStore, size: int) -> None:
    for _ in range(size // 1_000):
        await store.add([new_jobs(1_000)], now=NOW)
        jobs = await claim(store, 1_000)
        await store.settle(QUEUE, [fail(job) for job in jobs], now=NOW)
    await wait(store, FEW)


FILLS: dict[str, Fill] = {
    "waiting": wait,
    "priorities": wait_by_priority,
    "names": wait_behind_names_of_others,
    "delayed": delay,
    "finished": finish,
    "expiring": expire_later,
}


async def cost_of_running(store: MemoryStore, fill: Fill, size: int) -> int:
    await fill(store, size)
    names = ("send",) if fill is wait_behind_names_of_others else None
    numbers = count()

    def request() -> Any:
        return claim_request(100, names=names, token=f"run-{next(numbers)}")

    async def run() -> None:
        held = (await store.claim(request(), now=NOW)).jobs
        for _ in range(4):
            assert len(held) == 100
            outcomes = [complete(job, keep=FOREVER) for job in held]
            settled = await store.settle(QUEUE, outcomes, request(), now=NOW)
            assert settled.claimed is not None
            held = settled.claimed.jobs
        await store.tick(QUEUE, StallRules(), now=NOW)
        await store.count(QUEUE)

    return await calls_of(run())


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS.keys())
async def test_running_a_job_costs_the_same_among_many(store: MemoryStore, fill: Fill):
    few = await cost_of_running(MemoryStore.from_url("memory://"), fill, FEW)
    many = await cost_of_running(store, fill, MANY)

    assert many < 1.2 * few


@pytest.mark.parametrize("states", [("waiting",), ("completed",), ("waiting", "completed")])
async def test_a_page_costs_the_same_anywhere(store: MemoryStore, states: tuple[Any, ...]):
    async def pages_after(store: MemoryStore, size: int) -> int:
        await finish(store, size)
        await wait(store, size)
        half = await store.find(Find(QUEUE, states, limit=size // 2))
        return await calls_of(store.find(Find(QUEUE, states, limit=50, after=half.next)))

    few = await pages_after(MemoryStore.from_url("memory://"), FEW)

    # A page of fifty: what the event loop does in between can be a good part of it.
    assert await pages_after(store, MANY // 4) < 2 * few


class Counted(int):
    """A number that counts how often it is compared."""

    compared = 0
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int.__eq__(self, other)


async def test_finding_a_place_in_the_line_compares_few(store: MemoryStore):
    await store.add([[new_job(priority=Counted(number % 5)) for number in range(MANY)]], now=NOW)
    Counted.compared = 0

    await store.add([[new_job(priority=Counted(2)) for _ in range(100)]], now=NOW)

    # Twice over a binary search, in blocks and then in one of them; a scan would be 600 times that.
    assert Counted.compared < 100 * 40


async def test_cleaning_in_batches_sorts_by_age_only_once(store: MemoryStore):
    await wait(store, 10_000)
    first = await calls_of(store.clean(QUEUE, "waiting", limit=100, now=NOW + SECOND))
    second = await calls_of(store.clean(QUEUE, "waiting", limit=100, now=NOW + SECOND))

    assert second < first / 5


async def test_a_search_for_a_rare_name_looks_at_a_stride_at_a_time(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
):
    await store.add([[*new_jobs(3 * STRIDE, name="common"), new_job("a", name="rare")]], now=NOW)
    turns = 0
    turn = store._turn

    async def counted_turn() -> Any:
        nonlocal turns
        turns += 1
        return await turn()

    monkeypatch.setattr(store, "_turn", counted_turn)
    page = await store.find(Find(QUEUE, ("waiting",), name="rare"))

    assert [job.id for job in page.jobs] == ["a"]
    assert turns == 4


async def test_claims_that_know_the_names_in_front_sort_no_names(store: MemoryStore):
    await store.add([[new_job(name=f"name-{number % 3}") for number in range(1_000)]], now=NOW)

    jobs = await claim(store, 50, names=("name-0", "name-1", "name-2"))

    assert len(jobs) == 50
    assert queue_data(store, QUEUE).index("waiting")._by_name is None
