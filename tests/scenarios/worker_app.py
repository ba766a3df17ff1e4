"""A worker process: `python -m tests.scenarios.worker_app '{"url": ...}'`."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import resource
import signal
import sys
import time
from itertools import count, islice
from typing import Any, Literal

import msgspec

from ropeway import Queue, RetiredJob, ShutdownTimeout, Worker, connect
from ropeway.cli import loops
from ropeway.job.instants import Instant
from ropeway.store.commands import Settle
from ropeway.testing.proxy import StoreProxy

from .diary import Diary
from .handlers import ScenarioHandlers, die_at_once
from .parts import Parts

SHUTDOWN_TIMEOUT = 3
"""The exit code that tells of a `ShutdownTimeout`."""

ASK = signal.SIGUSR1
TOLD = "These were all tasks."

Fault = Literal["die before the handler", "die after the settling"]


class Orders(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    queue: str
    diary: str
    options: dict[str, Any]
    fault: Fault | None = None
    clock_shift: float = 0
    """Seconds by which this process believes it is later than it is."""
    more_queues: list[str] = []
    more_files: int | None = None
    """The most that this process may have open."""
    loop: loops.LoopName = "auto"
    callbacks: bool = False
    """Notes `deleted` for each job that retention deletes, before it hesitates."""


async def work(orders: Orders) -> int:
    tell_when_asked()
    diary = Diary(orders.diary)
    store: Any = connect(orders.url)
    if orders.more_files is not None:
        limit_files(orders.more_files)
    if orders.fault == "die after the settling":
        store = DiesAfterSettling(store)
    queues = [Queue(name, store=store) for name in (orders.queue, *orders.more_queues)]
    if orders.callbacks:
        orders.options["on_delete"] = lambda job: note_deleted(diary, job)
    handlers = ScenarioHandlers(diary).by_name() | Parts(diary).by_name()
    worker = Worker(queues, handlers, **orders.options)
    if orders.fault == "die before the handler":
        worker.on("active", lambda _: die_at_once())
    telling = asyncio.create_task(tell_of_shutdown(worker, diary))
    try:
        await worker.run()
    except ShutdownTimeout as late:
        diary.write("shutdown timeout", note=" ".join(late.job_ids))
        return SHUTDOWN_TIMEOUT
    finally:
        diary.write("left")
        telling.cancel()
        await store.close()
    return 0


def note_deleted(diary: Diary, job: RetiredJob) -> None:
    diary.write("deleted", note=job.id)
    time.sleep(0.02)


async def tell_of_shutdown(worker: Worker, diary: Diary) -> None:
    while worker._runtime is None:  # noqa: ASYNC110 - workers tell nobody that they have started
        await asyncio.sleep(0.001)
    diary.write("ready")
    await worker._runtime.stopping.wait()
    diary.write("stopping")


def tell_when_asked() -> None:
    """On `ASK` this process says where its threads and its tasks are."""
    asyncio.get_running_loop().add_signal_handler(ASK, tell_of_tasks)
    # The threads even if the loop does not come round.
    faulthandler.register(ASK, chain=True)


def tell_of_tasks() -> None:
    for task in asyncio.all_tasks():
        task.print_stack()
    print(TOLD, file=sys.stderr, flush=True)  # noqa: T201


class DiesAfterSettling(StoreProxy):
    """A store whose process dies when an outcome is stored, and before anybody in it can know."""

    async def do(self, command: Any, now: Instant | None = None) -> Any:
        answer = await super().do(command, now)
        if isinstance(command, Settle):
            die_at_once()
        return answer


class OneLine(logging.Formatter):
    """So that a test can take what is said line by line."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", " | ")


def limit_files(more: int) -> None:
    """Beside what is open already, which depends on the event loop."""
    free = (number for number in count() if not is_open(number))
    limit = next(islice(free, more, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def shift_clock(seconds: float) -> None:
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_time_ns() + int(seconds * 1e9)


def main() -> None:
    saying = logging.StreamHandler()
    saying.setFormatter(OneLine("%(levelname)s %(message)s"))
    logging.basicConfig(handlers=[saying])
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    if orders.clock_shift:
        # Before a store is loaded: it may keep the function.
        shift_clock(orders.clock_shift)
    # Some of these processes crash on purpose.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # By default on the loop that `ropeway worker` takes.
    sys.exit(loops.run(work(orders), orders.loop))


if __name__ == "__main__":
    main()
