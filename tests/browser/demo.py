"""A shop with an hour of history, and workers at work: what the pictures of the dashboard show."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import msgspec

from ropeway import Backoff, Flow, Queue, Worker
from ropeway.client.timings import HOUR, KIND, MINUTE
from ropeway.client.workers import read_workers
from ropeway.job.failure import Failure
from ropeway.job.ids import new_token
from ropeway.job.instants import Instant
from ropeway.job.outcomes import Outcome
from ropeway.job.record import NewJob
from ropeway.job.retention import Retention
from ropeway.job.timings import Timings
from ropeway.store.commands import Claim
from ropeway.store.contract import Store
from ropeway.store.values import Record

HISTORY: Final = 60
"""Minutes."""
FOREVER: Final = Retention()
TRACE: Final = """Traceback (most recent call last):
  File "/srv/shop/worker.py", line 88, in handle
    return await task(order)
  File "/srv/shop/{place}
{reason}
"""
FAILURES: Final = (
    ("ValueError: order {n} has no customer", 'orders.py", line 42, in import_order\n    check(order)'),
    ("ConnectionError: partner-{n}.example did not answer", 'partner.py", line 17, in call\n    await post(order)'),
    ("KeyError: 'zip_code'", 'labels.py", line 61, in print_label\n    address["zip_code"]'),
)


class Demo(NamedTuple):
    queue: Queue
    failed: str
    running: str
    flow: str


async def _history(store: Store, name: str, jobs: list[str], busy: float, chance: random.Random) -> None:
    """Jobs of each minute of the last hour, added, run and ended then."""
    now = await store.clock()
    hours: dict[Instant, dict[int, Timings]] = {}
    for minute in range(HISTORY, 0, -1):
        at: Instant = now - minute * MINUTE
        wave = 1.4 if 20 < minute < 32 else 1.0
        count = round(busy * wave * chance.uniform(0.7, 1.3))
        wait = round((40 if wave == 1.0 else 400) * chance.uniform(0.6, 1.8))
        new = [
            NewJob(name, new_token(), chance.choice(jobs), json.dumps({"order": 7_000 + number}))
            for number in range(count)
        ]
        await store.add([new], now=at)
        token = new_token()
        claimed = await store.claim(Claim(name, "shop-1", token, count, MINUTE), now=at + wait)
        outcomes = [
            _failed(job.id, token, chance) if chance.random() < 0.03 else _completed(job.id, token)
            for job in claimed.jobs
        ]
        await store.settle(name, outcomes, now=at + wait + chance.randrange(50, 900))
        timings = hours.setdefault(at - at % HOUR, {}).setdefault(at % HOUR // MINUTE, Timings())
        for _ in range(count):
            timings.wait.observe(wait * chance.uniform(0.3, 2.5))
    for hour, minutes in hours.items():
        await store.remember(Record(KIND, f"{name}:{hour}", msgspec.json.encode(minutes).decode()), lasting=24 * HOUR)


def _completed(id: str, token: str) -> Outcome:
    return Outcome(id, token, "complete", result='{"sent": true}', keep=FOREVER)


def _failed(id: str, token: str, chance: random.Random) -> Outcome:
    reason, place = chance.choices(FAILURES, (6, 3, 1))[0]
    reason = reason.format(n=chance.randrange(100, 999))
    failure = Failure(reason, TRACE.format(place=place, reason=reason))
    return Outcome(id, token, "fail", failure=failure, keep=FOREVER)


@asynccontextmanager
async def demo(store: Store) -> AsyncIterator[Demo]:
    chance = random.Random(7)
    await store.open()
    emails, images, orders = (Queue(name, store=store) for name in ("emails", "images", "orders"))
    await _history(store, "emails", ["send_email", "send_receipt"], 38, chance)
    await _history(store, "images", ["resize_image"], 12, chance)
    await _history(store, "orders", ["import_order", "call_partner", "make_report"], 17, chance)
    await orders.schedule("stock-taking", "count_stock", every="10 minutes", overlap="skip")
    await orders.schedule("monthly-report", "make_report", {"month": 1}, cron="0 9 1 * *", tz="Europe/Berlin")
    await emails.schedule(
        "newsletter", "send_email", {"to": "everybody"}, cron="30 8 * * mon-fri", tz="America/New_York"
    )
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def busy(job: Any) -> None:
        for text in ("opened photo.jpg, 4800 × 3200", "decoded in 112 ms", "resizing to 1600 px"):
            await job.log(text)
        await job.progress(40 + job.data.get("n", 0) * 7)
        if job.name == "resize_image" and job.data["n"] == 2:
            has_begun.set()
        await may_end.wait()

    async def partner(job: Any) -> None:
        raise ConnectionError("partner-7.example did not answer")

    flow = Flow(
        "publish_album",
        {"album": "Summer"},
        children=[
            Flow("make_cover", {"album": "Summer"}, children=[Flow("download", {"photo": n}) for n in range(3)]),
            Flow("write_captions", {"album": "Summer"}),
            Flow("notify_partner", {"album": "Summer"}, attempts=3, backoff=Backoff.fixed("10 minutes")),
        ],
    )
    album = await images.add_flow(flow)
    photos = [
        await images.add("resize_image", {"path": f"photo-{n}.jpg", "width": 1600, "n": n}, tags=["shop"])
        for n in range(3)
    ]
    await emails.add_many([("send_email", {"to": f"user{n}@example.com"}) for n in range(214)])
    await orders.add_many([("import_order", {"order": 9_000 + n}, {"delay": "20 minutes"}) for n in range(31)])
    await orders.add_many([("make_report", {"month": n}) for n in range(3)])
    await orders.pause("make_report")

    async def quick(job: Any) -> dict[str, Any]:
        await job.log("done")
        return {"album": "Summer"}

    small = {"download": quick, "write_captions": quick, "notify_partner": partner, "resize_image": busy}
    async with (
        Worker(images, small, name="images-1", concurrency=4),
        Worker([emails, orders], {"send_email": busy, "import_order": busy}, name="shop-1", concurrency=8),
        Worker([emails, orders], {"send_email": busy, "import_order": busy}, name="shop-2", concurrency=8),
    ):
        await has_begun.wait()
        # Workers report what they run every few seconds.
        while not all(worker.running for worker in await read_workers(store)):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.1)
        [failed] = await orders.find("failed", limit=1, newest_first=True)
        try:
            yield Demo(orders, failed.id, photos[2].id, album.id)
        finally:
            may_end.set()
            for queue in (emails, orders, images):
                await queue.pause()
