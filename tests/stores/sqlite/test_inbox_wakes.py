"""Who waits for a job is woken by one that goes by the inbox, as by a commit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ropeway.store.values import Answer, Topic
from ropeway.stores.sqlite import SQLiteStore, inbox
from ropeway.testing.conformance.waiting_claims import waiting_request
from ropeway.testing.factories import QUEUE, WORKER, new_job
from tests.stores.waiting import until

from . import processes
from .test_wake import LISTENS, LONG

pytestmark = pytest.mark.usefixtures("never_by_itself")


async def parked_claim(store: SQLiteStore) -> asyncio.Task[list[str]]:
    """A claim that the writer keeps until a job comes: it does not look for earlier ones."""
    store.listen("jobs", [QUEUE], WORKER)

    async def claim() -> list[str]:
        return [job.id for job in (await store.claim(waiting_request())).jobs]

    parked = asyncio.create_task(claim())
    await until(lambda: store._file is not None and store._file.listeners.has_parked_claim(QUEUE))
    return parked


def was_used(ring: Path) -> bool:
    return any(ring.read_bytes()[inbox._HEAD :])


@pytest.mark.parametrize("topic", ["jobs", "events"])
@pytest.mark.parametrize("way", ["awaited", "here"])
async def test_listeners_of_this_process_are_woken(store: SQLiteStore, ring: Path, topic: Topic, way: str):
    listener = store.listen(topic, [QUEUE])
    waiting = asyncio.create_task(listener.wait(LONG))
    jobs = [[new_job(is_fresh=True)]]

    await (store.add(jobs) if way == "awaited" else asyncio.to_thread(store.add_blocking, jobs))

    assert await waiting
    assert was_used(ring)


async def test_other_processes_are_woken(store: SQLiteStore, path: Path, ring: Path):
    other = processes.start(LISTENS, path)
    assert processes.line(other) == "ready"
    for _ in range(3):
        await store.add([[new_job(is_fresh=True)]])
        assert await asyncio.to_thread(processes.line, other) == "woken"

    assert was_used(ring)
    other.kill()
    other.communicate()


async def test_a_job_that_is_waited_for_here_needs_no_inbox(store: SQLiteStore, ring: Path):
    parked = await parked_claim(store)

    await store.add([[new_job("a", is_fresh=True)]])

    assert await parked == ["a"]
    assert not was_used(ring)


async def test_a_call_finds_what_was_taken_in_before_it_though_a_claim_stands_for_that(store: SQLiteStore):
    await store.add([[new_job("a", is_fresh=True)]])
    parked = await parked_claim(store)

    [answer] = await store.cancel(QUEUE, ["a"])

    assert answer == Answer("done", "waiting")
    await store.withdraw(waiting_request())
    assert await parked == []
