"""Jobs of every kind, with texts that would be code in a page that forgot to escape them; and all addresses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import product
from typing import Any, Final, NamedTuple
from unittest.mock import patch
from urllib.parse import quote

from ropeway import Flow, JobFailed, Queue, Unrecoverable, Worker
from ropeway.job import names
from ropeway.server.dashboard.table import ROUTES
from ropeway.store.contract import Store
from tests.patience import PATIENCE

HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</textarea></pre><script>alert(1)</script>",
    "javascript:alert(1)//",
    "{{ 7 * 7 }}{% raw %}",
    "<!--<script>",
    "\u202e<b>reversed</b>",
)
RAW: Final = ("<script>alert", "<img src=x", "<svg onload", "<b>reversed", "<!--<script", ">49<", 'href="javascript:')
"""What a page that forgot to escape would contain."""
SECRET: Final = "hunter2"
"""Is in the data, results, progress, logs and errors of some jobs, and in no name."""
NOT_PAGES: Final = ("/live",)
"""What is no page: a stream that does not end."""


class Filled(NamedTuple):
    queue: Queue
    params: dict[str, list[str]]
    """Values for the parameters of paths: each page is shown with all of them."""


def _name(text: str) -> str:
    """Names and tags are printable."""
    return text.replace("\u202e", "")


async def fill(store: Store, name: str = "mail") -> tuple[Queue, dict[str, str]]:
    """A queue with a job of each hostile text, which fail with it; and the ids of some jobs by state."""
    queue = Queue(name, store=store)

    async def handler(job: Any) -> Any:
        text = job.data["text"]
        await job.log(text)
        await job.progress(text)
        if job.data.get("fails"):
            raise Unrecoverable(text)
        return {"text": await job.step("quiet" if text == SECRET else _name(text), _same, text)}

    jobs = [
        await queue.add(_name(text), {"text": text, "fails": fails}, tags=[_name(text)])
        for text, fails in product(HOSTILE, (True, False))
    ]
    jobs += [await queue.add("quiet", {"text": SECRET, "fails": fails}) for fails in (True, False)]
    async with Worker(queue, handler):
        for job in jobs:
            with suppress(JobFailed):
                await job.result(timeout=PATIENCE)
    later = await queue.add("later", {"text": HOSTILE[0]}, delay="1 hour")
    waiting = await queue.add("welcome", {"to": "a@example.com", "wide": 12345678901234567890}, priority=3)
    quiet = {job.snapshot.state: job.id for job in await queue.find("failed", "completed", name="quiet")}
    failed, done = await queue.find("failed", limit=1), await queue.find("completed", limit=1)
    await queue.pause(HOSTILE[0])
    await queue.schedule("nightly", HOSTILE[0], {"text": HOSTILE[1]}, cron="0 3 * * *")
    ids = {"delayed": later.id, "waiting": waiting.id, "failed": failed[0].id, "completed": done[0].id}
    return queue, ids | {f"quiet {state}": id for state, id in quiet.items()}


async def _same(text: str) -> str:
    return text


@asynccontextmanager
async def filled(store: Store) -> AsyncIterator[Filled]:
    """More of it: flows, cancelled jobs, ids that no client can make, and a worker that runs a job meanwhile."""
    queue, ids = await fill(store)
    for text in (*HOSTILE, SECRET):
        cancelled = await queue.add("welcome", {"text": text}, dedupe=_name(text.replace(SECRET, "key")))
        await cancelled.cancel(text)
    child = Flow(HOSTILE[1], {"text": HOSTILE[1]}, tags=[HOSTILE[1]])
    parent = await queue.add_flow(Flow(HOSTILE[0], {"text": HOSTILE[0]}, children=[child]))
    with unchecked():
        await Queue(HOSTILE[0], store=store).add("welcome")
        await queue.add("welcome", {"text": HOSTILE[0]}, id=HOSTILE[1])
        await queue.schedule(HOSTILE[2], "welcome", cron="0 3 * * *")
    running = await queue.add("run", tags=[HOSTILE[0]], priority=-1)
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def run(job: Any) -> None:
        await job.progress(HOSTILE[1])
        has_begun.set()
        await may_end.wait()

    handlers = {"run": run, **{_name(text): run for text in HOSTILE}}
    async with Worker(queue, handlers, name=HOSTILE[1], concurrency=1) as worker:
        await has_begun.wait()
        try:
            yield Filled(
                queue,
                {
                    "queue": [queue.name],
                    "id": [*ids.values(), cancelled.id, parent.id, parent.children[0].id, running.id],
                    "schedule": ["nightly"],
                    "file": ["live.js"],
                    "operation": [],
                    "worker": [worker.id],
                },
            )
        finally:
            may_end.set()


@contextmanager
def unchecked() -> Iterator[None]:
    """Lets ids and names pass that a client refuses, as a program that writes into the store itself could."""
    anything = re.compile(".+")
    with patch.object(names, "_ID", anything), patch.object(names, "_QUEUE", anything):
        yield


def addresses(params: dict[str, list[str]]) -> list[str]:
    """Of every page in the table, with all values of its parameters. A new page cannot be left out."""
    found: list[str] = []
    for route in ROUTES:
        if route.method == "GET" and route.path not in NOT_PAGES:
            wanted = re.findall(r"{(\w+)}", route.path)
            for values in product(*(params[name] for name in wanted)):
                given = {name: quote(value, safe="") for name, value in zip(wanted, values, strict=True)}
                found.append(route.path.format(**given))
    return found
