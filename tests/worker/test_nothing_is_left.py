"""After a shutdown, whichever way it went, nothing of the worker is left in its process."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from ropeway import Job, Queue, ShutdownTimeout, SyncJob, Webhook, Worker, in_process
from ropeway.logger import log
from tests.patience import PATIENCE

from . import process_handlers
from .watching import told

pytestmark = pytest.mark.every_store


class Left(NamedTuple):
    """What a process has that outlives a call."""

    tasks: int
    threads: Counter[str]
    descriptors: int
    children: set[str]

    def has_more(self, before: Left) -> bool:
        """Less is no fault: threads of an earlier worker may have been counted that were about to end."""
        return (
            self.tasks > before.tasks
            or not self.threads <= before.threads
            or self.descriptors > before.descriptors
            or not self.children <= before.children
        )


def left() -> Left:
    gc.collect()
    return Left(
        len(asyncio.all_tasks()),
        # Some versions of asyncio wait for each process in a thread of their own.
        Counter(thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio")),
        len(list(Path("/proc/self/fd").iterdir())),
        # Of all threads: a process belongs to the one that started it.
        {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()},
    )


async def is_left(before: Left) -> None:
    """Waits until no more is left than before: threads of pools end a moment after they were told to."""
    deadline = time.monotonic() + PATIENCE
    while left().has_more(before) and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing tells when a thread has ended
        await asyncio.sleep(0.01)
    assert not (now := left()).has_more(before), (before, now)


class Handlers:
    """One in a coroutine, one in a thread and one in a process, which run until they are told to stop."""

    def __init__(self, *, is_stubborn: bool = False) -> None:
        self.is_stubborn = is_stubborn
        self.may_end = threading.Event()

    async def coroutine(self, _: Job) -> str:
        while not self.may_end.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                if not self.is_stubborn:
                    raise
        return "ended"

    def thread(self, job: SyncJob) -> str:
        while not self.may_end.is_set() and (self.is_stubborn or not job.cancelled):
            time.sleep(0.01)
        return "ended"

    def worker(self, queue: Queue, **options: float) -> Worker:
        named = {
            "coroutine": self.coroutine,
            "thread": self.thread,
            "process": in_process(process_handlers.hang),
        }
        return Worker(queue, named, **options)  # type: ignore[arg-type]


async def begin(queue: Queue, *names: str) -> None:
    for name in names:
        job = await queue.add(name)
        await told(queue, "active", job)


async def before(queue: Queue) -> Left:
    """What there is once everything that the process and its store keep has been opened by a first worker."""
    # On a busy machine a worker may have something to say; the first line starts the thread of the log, which stays.
    log.warning("begins")
    async with Worker(queue, {"first": lambda _: None, "second": in_process(process_handlers.answer_pid)}):
        for job in [await queue.add("first"), await queue.add("second")]:
            await job.result(timeout=PATIENCE)
    return left()


async def test_nothing_is_left_of_a_worker_that_drained_in_time(queue: Queue):
    at_first = await before(queue)
    handlers = Handlers()
    async with handlers.worker(queue):
        await begin(queue, "coroutine", "thread")
        handlers.may_end.set()
    assert (await queue.counts())["completed"] == 4
    await is_left(at_first)


async def test_nothing_is_left_of_a_worker_whose_handlers_were_told_to_stop(queue: Queue):
    at_first = await before(queue)
    async with Handlers().worker(queue, grace=0):
        await begin(queue, "coroutine", "thread", "process")
    counts = await queue.counts()
    assert (counts["active"], counts["waiting"]) == (0, 2), "the thread returned, the others were handed back"
    await is_left(at_first)


async def test_of_handlers_that_ignore_everything_only_they_are_left(queue: Queue):
    at_first = await before(queue)
    handlers = Handlers(is_stubborn=True)
    try:
        with pytest.raises(ShutdownTimeout):
            async with handlers.worker(queue, grace=0, cancel_grace=0.05):
                await begin(queue, "coroutine", "thread", "process")
        assert (await queue.counts())["waiting"] == 3
        assert left().children <= at_first.children, "a process cannot ignore its end"
    finally:
        # A failed test must not wait for them for ever.
        handlers.may_end.set()
    await is_left(at_first)


async def test_nothing_is_left_of_a_worker_whose_delivery_hangs(queue: Queue):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"localhost:{silent.getsockname()[1]}"
        orders = Queue(queue.name, store=queue.store, webhook=Webhook(f"http://{host}", allow_hosts=[host]))
        at_first = await before(queue)
        async with Worker(orders, lambda _: None, grace=0.1, cancel_grace=0.1):
            job = await orders.add("first")
            await job.result(timeout=PATIENCE)
            delivery = await orders.delivery(job.id)
            assert delivery is not None
            await told(delivery.queue, "active", delivery)
        seen = await delivery.refresh()
        assert (seen.state, seen.attempts_made) == ("waiting", 0), "it was handed back"
        await is_left(at_first)


async def test_nothing_is_left_of_a_worker_that_was_cancelled(queue: Queue):
    at_first = await before(queue)
    running = asyncio.create_task(Handlers().worker(queue, grace=0).run())
    await begin(queue, "coroutine", "thread", "process")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert (await queue.counts())["active"] == 0
    await is_left(at_first)
