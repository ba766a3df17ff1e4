"""Names of other queues, and those that one would expect: each leads to what there is."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from ropeway import Queue, Worker
from ropeway.errors import InvalidInput, InvalidOption, StoreClosed


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
        lambda: job.kill: "await job.cancel",
        lambda: job.getState: "await job.state",
        lambda: job.waitUntilFinished: "await job.result",
        lambda: it.add_bulk: "await queue.add_many",
        lambda: it.sync.addBulk: "queue.sync.add_many",
        lambda: it.enqueue_in: "await queue.add",
        lambda: it.getJob: "await queue.get",
        lambda: it.jobs: "await queue.find",
        lambda: it.count: "await queue.counts",
        lambda: it.empty: "await queue.drain",
        lambda: it.revoke: "await queue.cancel",
    }.items():
        with pytest.raises(AttributeError) as missing:
            call()
        assert f": use {instead}(" in str(missing.value)


def test_other_words_for_what_tasks_and_workers_do(queue: Queue):
    @queue.task
    async def resize(path: str) -> None: ...

    task: Any = resize
    worker: Any = Worker(queue)
    for call, instead in {
        lambda: task.map: "await queue.add_many(",
        lambda: task.add_many: "await queue.add_many(",
        lambda: task.with_options: "task.using(",
        lambda: task.s: "task.call(",
        lambda: worker.close: "worker.stop(",
        lambda: worker.started: "`async with worker:`",
    }.items():
        with pytest.raises(AttributeError) as missing:
            call()
        assert f": use {instead}" in str(missing.value)


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


def test_hints_are_not_listed_among_the_attributes(queue: Queue):
    assert "add" in dir(queue)
    assert "enqueue" not in dir(queue)
    assert "add_sync" not in dir(queue)


def test_a_subclass_may_have_such_a_name_of_its_own():
    class Mixin:
        def enqueue(self) -> str:
            return "mixin"

    class Odd(Queue, Mixin):
        def send(self) -> str:
            return "own"

    queue = Odd("letters", "memory://")
    queue.push = "set"  # type: ignore[attr-defined]

    assert (queue.enqueue(), queue.send(), queue.push) == ("mixin", "own", "set")  # type: ignore[attr-defined]


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


@pytest.mark.parametrize("word", ["connection", "broker"])
def test_a_store_by_another_word_is_told_what_it_is_called(word: str):
    with pytest.raises(InvalidOption, match="by 'url', or give what connect"):
        Queue("letters", **{word: "redis://host"})  # type: ignore[arg-type]


def test_bind_is_told_of_the_first_parameter(queue: Queue):
    with pytest.raises(InvalidOption, match="`job: Job`"):
        queue.task(bind=True)  # type: ignore[call-overload]


async def test_a_task_in_the_place_of_a_name_is_told_to_use_its_add(queue: Queue):
    @queue.task
    async def send_email(to: str) -> None: ...

    with pytest.raises(InvalidInput, match=r"use send_email\.add\(\.\.\.\)"):
        await queue.add(send_email, "x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"make it a task with @queue\.task"):
        await queue.add(print, "x")  # type: ignore[arg-type]


async def test_a_queue_that_was_left_says_how_to_use_it_again():
    queue = Queue("letters", "memory://left")
    async with queue:
        await queue.add("send")
    with pytest.raises(StoreClosed, match="at the end of its block: enter that again, or make another Queue"):
        await queue.add("send")
