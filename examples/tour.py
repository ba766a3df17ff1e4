"""A small shop that shows what happens in its queues. `make run` starts it on the file ropeway.db.

Emails are sent, images resized in threads, a partner's interface fails and is called again, reports wait for their
hour, an order is beyond repair, a slow import is cancelled, and a schedule has the stock counted. In a terminal
`ropeway top` shows it all, until q or Ctrl-C; elsewhere every event is a line. It is served over HTTP meanwhile, at the
address that it prints. `--once` adds one round, waits for its end and prints a summary. The view and the server need
`pip install "ropeway[cli,server]"`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from ropeway import Backoff, Event, Job, JobHandle, Queue, SyncJob, Unrecoverable, Worker, connect
from ropeway.server import broker
from ropeway.server.dashboard import Dashboard
from ropeway.server.serving import LOCAL, Address, serving


async def send_email(job: Job) -> dict[str, str]:
    await asyncio.sleep(random.uniform(0.02, 0.2))
    return {"sent": job.data["to"]}


def resize_image(job: SyncJob) -> str:
    for percent in range(0, 101, 5):
        if job.cancelled:  # by somebody, or because the worker ends: then another worker begins anew
            break
        time.sleep(job.data["width"] / 16_000)
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
    problem = random.choice(("has no customer", "costs less than nothing", "was cancelled by phone"))
    raise Unrecoverable(f"order {job.data['order']} {problem}")


async def import_catalogue(job: Job) -> None:
    for page in range(job.data["pages"]):
        await job.progress(f"page {page} of {job.data['pages']}")
        await asyncio.sleep(0.2)


async def count_stock(job: Job) -> int:
    await asyncio.sleep(1)
    return random.randrange(1_000)


HANDLERS: dict[str, Any] = {
    "send_email": send_email,
    "resize_image": resize_image,
    "call_partner": call_partner,
    "make_report": make_report,
    "count_stock": count_stock,
    "import_order": import_order,
    "import_catalogue": import_catalogue,
}


class Shop:
    """Three queues on one store."""

    def __init__(self, url: str | None) -> None:
        self.store = connect(url)
        self.emails = Queue("emails", store=self.store)
        self.images = Queue("images", store=self.store)
        self.orders = Queue("orders", store=self.store)
        self.queues = [self.emails, self.images, self.orders]
        self.cancelling: set[asyncio.Task[None]] = set()

    async def add_round(self, number: int, emails: int = 5, width: int = 160) -> list[Any]:
        """Adds jobs of every kind."""
        jobs = await self.emails.add_many([("send_email", {"to": f"user{n}@example.com"}) for n in range(emails)])
        retries = Backoff.exponential(0.2, jitter=0.5)
        slow = await self.orders.add("import_catalogue", {"pages": 10_000}, timeout="30 seconds")
        cancelling = asyncio.create_task(cancel_soon(slow))
        self.cancelling.add(cancelling)
        cancelling.add_done_callback(self.cancelling.discard)
        return [
            *jobs,
            await self.images.add("resize_image", {"path": f"photo-{number}.jpg", "width": width}, priority=5),
            await self.orders.add("call_partner", {"order": number}, attempts=4, backoff=retries),
            await self.orders.add("make_report", {"month": number % 12 + 1}, delay="1.5 seconds"),
            await self.orders.add("import_order", {"order": number}, attempts=3),
            slow,
        ]


async def cancel_soon(job: JobHandle[Any]) -> None:
    await asyncio.sleep(1)
    await job.cancel("a newer one is there")


async def once(shop: Shop) -> None:
    started = time.monotonic()
    jobs = await shop.add_round(0)
    states: Counter[str] = Counter()
    for job in jobs:
        with contextlib.suppress(Exception):
            await job.result(timeout=60)
        states[await job.state()] += 1
    print(f"\n{len(jobs)} jobs in {time.monotonic() - started:.1f} s:", dict(states))


async def on_and_on(shop: Shop) -> None:
    await shop.orders.schedule("stock-taking", "count_stock", every="10 seconds", overlap="skip")
    await shop.orders.schedule("monthly-report", "make_report", {"month": 1}, cron="0 9 1 * *", tz="Europe/Berlin")
    for number in itertools.count():
        await shop.add_round(number, emails=random.choice((2, 5, 10, 40)), width=random.choice((160, 1600, 4800)))
        await asyncio.sleep(random.uniform(0.5, 2))


async def narrate(queue: Queue, after: str) -> None:
    """Prints what happens, as anybody who can open the store may see it."""
    names: dict[str, str] = {}
    async for event in queue.events(after):
        if event.job_id and event.name == "added":
            names[event.job_id] = event.data["name"]
        print(line(event, names.get(event.job_id or "", "")), flush=True)


def line(event: Event, name: str) -> str:
    at = datetime.fromtimestamp(event.at / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    told = {key: value for key, value in event.data.items() if key in ("result", "reason", "progress", "delay")}
    return f"{at}  {event.name:<18} {name:<18} {' '.join(f'{key}={value!r}' for key, value in told.items())}"


async def show(shop: Shop, worker: Worker) -> None:
    """Runs `ropeway top` beside the worker, as you would in a terminal of your own, until it is quit."""
    # What the worker logs would be written across the view, which shows it anyway.
    logging.getLogger("ropeway").addHandler(logging.NullHandler())
    watched = [f"--queue={queue.name}" for queue in shop.queues]
    top = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ropeway", "top", "--url", shop.store.url, "--interval", "0.5", *watched
    )
    try:
        if await top.wait() < 128:
            # Quit by a key. A signal such as Ctrl-C reaches the worker too, and asked twice it would not wait for jobs.
            worker.stop()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            top.terminate()
        await top.wait()
        raise


@contextlib.asynccontextmanager
async def served(shop: Shop) -> AsyncIterator[str]:
    """Serves the shop's queues over HTTP, with the dashboard; at another port if that of `ropeway serve` is taken."""
    app = broker(shop.queues)
    app.pages = Dashboard(app)
    async with contextlib.AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(serving(app))
        except OSError:
            address = await stack.enter_async_context(serving(app, Address(LOCAL.host, 0)))
        yield address.url


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--once", action="store_true", help="end by itself, with a summary")
    options.add_argument("--lines", action="store_true", help="a line for every event, in a terminal too")
    options.add_argument("--name", default="shop", help="of the worker, if several run")
    options.add_argument("--url", help="another store than ropeway.db")
    given = options.parse_args()
    has_view = sys.stdout.isatty() and not given.once and not given.lines

    shop = Shop(given.url)
    await shop.store.open()
    async with served(shop) as url:
        print(f"{', '.join(queue.name for queue in shop.queues)} on {shop.store.url} · Ctrl-C to end")
        print(f"dashboard: {url}")
        print(f"over HTTP: {url}/v1/stats · {url}/openapi.json", flush=True)
        if has_view:
            await asyncio.sleep(2)  # The view takes the whole terminal.
        await run(shop, given, has_view=has_view)
    await shop.store.close()


async def run(shop: Shop, given: argparse.Namespace, *, has_view: bool) -> None:
    # A job that fails comes with its trace in the log. Here it is a line among the events, and a row of the view.
    logging.getLogger("ropeway").addFilter(lambda record: "\n" not in record.getMessage())
    worker = Worker(shop.queues, HANDLERS, concurrency=5, grace=2, name=given.name)
    shown = [show(shop, worker)] if has_view else [narrate(queue, await queue.newest_event()) for queue in shop.queues]
    work = [asyncio.create_task(each) for each in (once(shop) if given.once else on_and_on(shop), *shown)]
    work[0].add_done_callback(lambda _: worker.stop())
    try:
        await worker.run()
    finally:
        ending = [*work, *shop.cancelling]
        for task in ending:
            task.cancel()
        await asyncio.wait(ending)
    for queue in shop.queues:
        print(f"in {queue.name} now:", {state: n for state, n in (await queue.counts()).items() if n})
    for task in work:
        if not task.cancelled():
            task.result()


if __name__ == "__main__":
    asyncio.run(main())
