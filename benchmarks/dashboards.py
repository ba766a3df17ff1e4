"""The dashboard over many jobs: how long its pages take, and what viewers cost while nothing happens.

Imported by Ropeway's own systems. The server is imported inside the functions: what others take in memory is measured.
"""

import asyncio
import itertools
import re
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks import protocol
from benchmarks.protocol import Answer
from ropeway import Flow, Queue, connect
from ropeway.job.failure import Failure
from ropeway.job.ids import new_token
from ropeway.job.outcomes import Outcome
from ropeway.job.retention import Retention
from ropeway.store.commands import Claim
from ropeway.store.contract import Store

QUEUES = 10
KINDS = ("completed",) * 5 + ("failed", "delayed") + ("waiting",) * 3
"""Of ten bulks."""
LOCK = 600_000
FOREVER = Retention()
TURNS = 15
VIEWERS = 10
TRACE = 'Traceback (most recent call last):\n  File "/srv/shop/orders.py", line 42, in import_order\n    check(order)\n'


def open_store(place: str) -> Store:
    return connect(place if "://" in place else f"sqlite:///{place}/ropeway.db")


async def fill(place: str, n: int) -> Answer:
    """Jobs in every state, in several queues; in the first of them a wide flow and schedules."""
    store = open_store(place)
    await store.open()
    bulks = n // QUEUES // protocol.BULK
    queues = [Queue(f"queue-{number}", store=store) for number in range(QUEUES)]
    await asyncio.gather(*(_fill(queue, bulks) for queue in queues))
    await queues[0].add_flow(Flow("send_report", children=[Flow("collect") for _ in range(protocol.BULK)]))
    for number in range(100):
        await queues[0].schedule(f"s-{number}", "send_report", cron=f"{number % 60} 3 * * *")
    await store.close()
    return {}


async def _fill(queue: Queue, bulks: int) -> None:
    # The longest states first: what is to end is then claimed as soon as it was added.
    kinds = sorted(itertools.islice(itertools.cycle(KINDS), bulks))
    for number, kind in enumerate(kinds):
        options: dict[str, Any] = {"delay": "1 day"} if kind == "delayed" else {}
        jobs: Any = [
            (f"task_{each % 7}", {**protocol.PAYLOAD, "n": number * protocol.BULK + each}, options)
            for each in range(protocol.BULK)
        ]
        await queue.add_many(jobs)
        if kind in ("completed", "failed"):
            await _end(queue, kind)


async def _end(queue: Queue, kind: str) -> None:
    token = new_token()
    claimed = await queue.store.claim(Claim(queue.name, "bench", token, protocol.BULK, LOCK))
    outcomes = [
        Outcome(job.id, token, "complete", result='{"sent": true}', keep=FOREVER)
        if kind == "completed"
        else Outcome(
            job.id,
            token,
            "fail",
            failure=Failure(f"Error{number % 40}: order {number} has no customer", TRACE),
            keep=FOREVER,
        )
        for number, job in enumerate(claimed.jobs)
    ]
    await queue.store.settle(queue.name, outcomes)


async def pages(place: str) -> Answer:
    """The median time to each page, in milliseconds."""
    async with _served(place) as (shown, port):
        addresses = await _addresses(Queue("queue-0", store=shown.broker.store))
        times: dict[str, list[float]] = {name: [] for name in addresses}
        viewer = Viewer(port)
        for _ in range(TURNS):
            for name, address in addresses.items():
                # What was read for the page before would flatter this one.
                shown.summaries.forget()
                started = time.perf_counter()
                status, _ = await viewer.get(address)
                times[name].append((time.perf_counter() - started) * 1000)
                assert status == 200, (address, status)
        viewer.close()
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {"slowest": max(medians.values()), **medians}


async def idle(place: str, seconds: float) -> Answer:
    """What the server takes while people look at pages on which nothing happens; browsers run in another process."""
    async with _served(place) as (_, port):
        with protocol.beside("look_on", port=port):
            return await asyncio.to_thread(protocol.idle_cost, seconds)


async def look_on(port: int) -> None:
    """Does what the pages' scripts do: follows changes, and fetches the page again after each."""
    addresses = ("/", "/jobs", "/queues/queue-0", "/failures", "/workers")
    viewers = [asyncio.create_task(_look(port, address)) for address in (*addresses, *addresses)[:VIEWERS]]
    await asyncio.sleep(3)
    protocol.tell("ready")
    await asyncio.gather(*viewers)


async def _look(port: int, address: str) -> None:
    viewer = Viewer(port)
    _, page = await viewer.get(address)
    live = re.search(rb'data-live="([^"]+)"', page)
    assert live is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {live[1].decode().replace('&amp;', '&')} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
    while line := await reader.readline():
        if line.startswith(b"event: change"):
            await viewer.get(address, "x-ropeway-part: 1\r\n")


class Viewer:
    """A connection that asks for pages, one at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writer: asyncio.StreamWriter | None = None
        self._tag = ""

    async def get(self, address: str, headers: str = "") -> tuple[int, bytes]:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        known = f"if-none-match: {self._tag}\r\n" if headers else ""
        self._writer.write(f"GET {address} HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}{known}\r\n".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
        self._tag = fields.get("etag", "")
        return int(head[9:12]), await self._reader.readexactly(int(fields.get("content-length", 0)))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@asynccontextmanager
async def _served(place: str) -> AsyncIterator[tuple[Any, int]]:
    """The dashboard, and its port."""
    from ropeway.server import broker
    from ropeway.server.dashboard.application import Dashboard
    from ropeway.server.serving import Address, serving

    store = open_store(place)
    app = broker(store)
    app.pages = dashboard = Dashboard(app)
    async with serving(app, Address("127.0.0.1", 0)) as address:
        yield dashboard, address.port
    await store.close()


async def _addresses(queue: Queue) -> dict[str, str]:
    """Every page of the table, by its path, and some with filters."""
    from ropeway.server.dashboard.table import ROUTES

    [failed] = await queue.find("failed", limit=1)
    [parent] = await queue.find("waiting-children", limit=1)
    deep = await queue.find("completed", limit=protocol.BULK, newest_first=True)
    for _ in range(3):
        deep = await queue.find("completed", limit=protocol.BULK, newest_first=True, after=deep.next)
    known = {"queue": queue.name, "id": failed.id, "file": "live.js"}
    paths = [
        route.path
        for route in ROUTES
        if route.method == "GET" and route.media == "text/html" and "{operation}" not in route.path
    ]
    return {
        **{path: path.format(**known) for path in paths if path != "/jobs/all"},
        "/overview day": "/?span=day",
        "/queue day": f"/queues/{queue.name}?span=day",
        "/parent": f"/queues/{queue.name}/jobs/{parent.id}",
        "/flow": f"/queues/{queue.name}/flows/{parent.id}",
        "/jobs of a queue": f"/jobs?queue={queue.name}",
        "/jobs failed": "/jobs?state=failed",
        "/jobs by name": f"/jobs?queue={queue.name}&name=task_3",
        "/jobs 4,000 further": f"/jobs?queue={queue.name}&state=completed&after={queue.name}~{deep.next}",
        "/jobs by text": "/jobs?text=nothing-has-this",
        "/jobs/all": "/jobs/all?action=cancel",
        "/jobs/all by text": f"/jobs/all?action=retry&queue={queue.name}&text=nothing-has-this",
        "/failures of a queue": f"/failures?queue={queue.name}",
    }
