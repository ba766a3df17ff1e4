"""An app whose handlers say, on standard output, what they do."""

import asyncio
import os
import time
from typing import Any

from ropeway import Job, Queue, SyncJob, Worker

LOCK = 30.0

letters = Queue("letters")
parcels = Queue("parcels")


async def send(job: Job) -> dict[str, object]:
    return {"to": job.data, "pid": os.getpid()}


async def hold(job: Job) -> str:
    """Ends when it is told to, or when its file is there."""
    print("holding", flush=True)  # noqa: T201 - its test listens
    while not os.path.exists(job.data):  # noqa: ASYNC110, ASYNC240, PTH110 - a file is all it can see
        await asyncio.sleep(0.02)
    return "let go"


def deaf(job: SyncJob) -> None:
    """Ends when its file is there, whatever it is told."""
    print("not listening", flush=True)  # noqa: T201
    while not os.path.exists(job.data):  # noqa: PTH110
        time.sleep(0.02)


async def die(job: Job) -> None:
    """Takes its process along: by a signal, or with an exit code."""
    if job.data < 0:
        os.kill(os.getpid(), -job.data)
    os._exit(job.data)


async def where(_: Job) -> str:
    """What it runs on."""
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def make() -> Worker:
    handlers: Any = {"send": send, "hold": hold, "deaf": deaf, "where": where, "die": die}
    return Worker([letters, parcels], handlers, grace=60, lock_duration=LOCK)
