"""A small application that shows what happens in a queue. `make run` starts it on the file ropeway.db.

Emails are sent, images resized in threads, a partner's interface fails and is called again, reports wait for their
hour, an order is beyond repair, and a slow import is cancelled. `--once` adds one round, waits for its end and prints
a summary.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from ropeway import Backoff, Event, Job, Queue, SyncJob, Unrecoverable, Worker

QUEUE = "tour"


async def send_email(job: Job) -> dict[str, str]:
    await asyncio.sleep(random.uniform(0.02, 0.2))
    return {"sent": job.data["to"]}


def resize_image(job: SyncJob) -> str:
    for percent in (25, 50, 75, 100):
        time.sleep(0.05)
        job.progress(percent)
    return f"{job.data['path']} at {job.data['width']} px"


async def call_partner(job: Job) -> str:
    if job.attempt < 3:
        raise ConnectionError(f"the partner did not answer attempt {job.attempt}")
    return f"answered attempt {job.attempt}"


async def make_report(job: Job) -> str:
    await job.log("collecting figures")
    return f"report for {job.data['month']}"


async def import_order(job: Job) -> None:
    raise Unrecoverable(f"order {job.data['order']} has no customer")


async def import_catalogue(job: Job) -> None:
    await asyncio.sleep(60)


HANDLERS: dict[str, Any] = {
    "send-email": send_email,
    "resize-image": resize_image,
    "call-partner": call_partner,
    "make-report": make_report,
    "import-order": import_order,
    "import-catalogue": import_catalogue,
}


async def add_round(queue: Queue, number: int) -> list[str]:
    """Adds jobs of every kind; answers their ids."""
    emails = await queue.add_many(
        [("send-email", {"to": f"user{n}@example.com"}) for n in range(number * 5, number * 5 + 5)]
    )
    others = [
        await queue.add("resize-image", {"path": f"photo-{number}.jpg", "width": 800}, priority=5),
        await queue.add("call-partner", {"order": number}, attempts=4, backoff=Backoff.exponential(0.2, jitter=0.5)),
        await queue.add("make-report", {"month": number % 12 + 1}, delay="1.5 seconds"),
        await queue.add("import-order", {"order": number}, attempts=3),
    ]
    slow = await queue.add("import-catalogue", {"pages": 10_000}, timeout="30 seconds")
    asyncio.get_running_loop().call_later(1.0, lambda: asyncio.ensure_future(slow.cancel("a newer one is there")))
    return [job.id for job in [*emails, *others, slow]]


async def narrate(queue: Queue) -> None:
    """Prints what happens, as anybody who can open the store may see it."""
    names: dict[str, str] = {}
    async for event in queue.events():
        if event.job_id and event.name == "added":
            names[event.job_id] = event.data["name"]
        print(line(event, names.get(event.job_id or "", "")), flush=True)


def line(event: Event, name: str) -> str:
    at = datetime.fromtimestamp(event.at / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    told = {key: value for key, value in event.data.items() if key in ("result", "reason", "progress", "delay")}
    return f"{at}  {event.name:<18} {name:<18} {' '.join(f'{key}={value!r}' for key, value in told.items())}"


async def once(queue: Queue) -> None:
    started = time.monotonic()
    ids = await add_round(queue, 0)
    states: Counter[str] = Counter()
    for job_id in ids:
        job = await queue.get(job_id)
        assert job is not None
        with contextlib.suppress(Exception):
            await job.result(timeout=60)
        states[await job.state()] += 1
    print(f"\n{len(ids)} jobs in {time.monotonic() - started:.1f} s:", dict(states))


async def on_and_on(queue: Queue) -> None:
    for number in itertools.count():
        await add_round(queue, number)
        await asyncio.sleep(2)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--once", action="store_true", help="end by itself, with a summary")
    options.add_argument("--url", help="another store than ropeway.db")
    given = options.parse_args()

    async with Queue(QUEUE, given.url) as queue:
        print(f"{queue} · Ctrl-C to end")
        worker = Worker(queue, HANDLERS, concurrency=5, grace=2)
        narrator = asyncio.create_task(narrate(queue))
        producer = asyncio.create_task(once(queue) if given.once else on_and_on(queue))
        producer.add_done_callback(lambda _: worker.stop())
        try:
            await worker.run()
        finally:
            for task in (producer, narrator):
                task.cancel()
            await asyncio.wait([producer, narrator])
        print("in the queue now:", {state: n for state, n in (await queue.counts()).items() if n})
        if producer.done() and not producer.cancelled():
            producer.result()


if __name__ == "__main__":
    asyncio.run(main())
