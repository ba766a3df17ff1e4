"""Names of other queues, and those that one would expect: each leads to what there is."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from ropeway import Queue, Worker


@pytest.fixture
def queue() -> Queue:
    return Queue("letters", "memory://")


@pytest.mark.parametrize("name", ["enqueue", "send", "apply_async", "kiq", "delay", "defer", "put", "send_task"])
def test_adding_by_another_name_leads_to_add(queue: Queue, name: str):
    @queue.task
    async def resize(path: str) -> None: ...

    for odd, instead in {
        queue: r"use await queue\.add\(name, data\)",
        queue.sync: r"use queue\.sync\.add\(name, data\)",
        resize: r"use task\.add\(\.\.\.\), or task\.using",
        resize.using(priority=1): r"use task\.add",
    }.items():
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': {instead}"):
            getattr(odd, name)


async def test_what_waits_is_found_on_the_twin(queue: Queue):
    job: Any = await queue.add("send")
    it: Any = queue
    for call, instead in {
        lambda: job.result_sync: "job.sync.result",
        lambda: job.cancel_sync: "job.sync.cancel",
        lambda: job.sync.result_sync: "job.result",
        lambda: it.add_sync: "queue.sync.add",
        lambda: it.find_sync: "queue.sync.find",
        lambda: it.sync.find_sync: "queue.sync.find",
        lambda: job.get: "await job.result",
        lambda: job.status: "await job.state",
        lambda: job.sync.status: "job.state",
        lambda: job.revoke: "await job.cancel",
    }.items():
        with pytest.raises(AttributeError) as missing:
            call()
        assert f": use {instead}(" in str(missing.value)


def test_a_worker_is_started_by_run(queue: Queue):
    worker: Any = Worker(queue, {"send": lambda job: None})

    with pytest.raises(AttributeError, match=r"use await worker\.run\(\), worker\.run_sync\(\)"):
        worker.start()


def test_any_other_name_is_an_attribute_error_as_everywhere(queue: Queue):
    it: Any = queue

    assert not hasattr(queue, "nothing_sync")
    assert getattr(queue, "enqueue", None) is None
    with pytest.raises(AttributeError, match=r"^'Queue' object has no attribute 'nothing'$"):
        _ = it.nothing


def test_an_error_inside_a_property_is_not_hidden():
    class Odd(Queue):
        @property
        def mood(self) -> str:
            return self.weather  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match="has no attribute 'weather'"):
        _ = Odd("letters", "memory://").mood


async def test_a_handle_can_still_be_copied(queue: Queue):
    job = await queue.add("send")

    assert copy.copy(job).id == job.id
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(job)
