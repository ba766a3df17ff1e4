"""Cancelling from another process reaches a handler that runs."""

from __future__ import annotations

import time

import pytest

from ropeway import Queue
from tests.patience import PATIENCE

from .chronicle import Chronicle
from .harness import Fleet, Gate, show, until

pytestmark = pytest.mark.every_store


@pytest.mark.parametrize("handler", ["hold", "listen-in-thread"])
async def test_a_running_handler_hears_of_its_cancellation(
    handler: str, queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    job = await queue.add(handler, str(gate))
    worker = fleet.start()
    await fleet.running_in(job.id)
    asked = time.monotonic()
    assert await job.cancel("not needed")
    [stopped] = await until(lambda: worker.wrote("stopped"), "the end of the handler", timeout=PATIENCE)
    show(f"from the cancel to the end of a {handler} handler", (stopped.at - asked) * 1000, "ms")
    cancelled = await job.refresh()
    assert (cancelled.state, cancelled.reason) == ("cancelled", "not needed")
    # Its slot is free again, and nothing of it is settled.
    after = await queue.add("nap", 0)
    await after.result(timeout=PATIENCE)
    assert await chronicle.ids("lock-lost") == []
    assert await chronicle.ids("complete") == [after.id]
