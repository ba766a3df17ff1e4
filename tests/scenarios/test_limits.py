"""Workers that may open only a few files."""

from __future__ import annotations

import time

import pytest

from ropeway import Queue
from tests.patience import PATIENCE

from .chronicle import Chronicle
from .harness import Fleet, Gate, until


@pytest.mark.every_store
async def test_a_worker_that_may_open_few_files_works(queue: Queue, fleet: Fleet):
    worker = fleet.start(orders={"more_files": 50})
    jobs = await queue.add_many([("nap", 0.001) for _ in range(200)])
    for job in jobs:
        await job.result(timeout=PATIENCE)
    assert worker.errors == []


async def test_a_worker_whose_handler_takes_every_file_goes_on(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    greedy = await queue.add("take-all-files", str(gate))
    worker = fleet.start(orders={"more_files": 50}, lock_duration=1)
    await fleet.running_in(greedy.id)
    # A second process: to wake it, the first would have to open its pipe.
    fleet.start(lock_duration=1)
    jobs = await queue.add_many([("nap", 0.001) for _ in range(200)])
    for job in jobs:
        await job.result(timeout=PATIENCE)
    await until(lambda: len(worker.wrote("end")) > 0, "work in the worker without files")
    gate.open()
    await greedy.result(timeout=PATIENCE)
    assert await chronicle.ids("stall") == []


@pytest.mark.every_store
async def test_a_worker_that_may_open_too_few_files_says_so_and_does_not_spin(queue: Queue, fleet: Fleet, url: str):
    await queue.add("nap", 0)
    # SQLite needs three, and two of them before it says what is wrong.
    worker = fleet.start(orders={"more_files": 2 if url.startswith("sqlite") else 0})
    await until(lambda: "too many open files" in worker.said.lower(), "a complaint")
    began, used = time.monotonic(), worker.cpu_seconds()
    await until(lambda: worker.said.lower().count("too many open files") >= 5, "four complaints more")
    assert worker.cpu_seconds() - used < (time.monotonic() - began) / 4
    # Not for ever: what it waits for may come.
    assert worker.exit_code is None
