"""`ropeway bench`: measures the store on this machine, in a separate queue."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import click
import msgspec

from ..client.queue import Queue
from ..job.ids import new_token
from ..worker.job import Job
from ..worker.worker import Worker
from . import loops
from .helping import examples
from .options import json_option, url_option
from .stores import opened
from .tables import Column, show_table
from .text import as_json as json_text

_SAMPLES = 50


class Figures(msgspec.Struct, frozen=True):
    """Results: jobs per second, and milliseconds."""

    store: str
    jobs: int
    concurrency: int
    add_one_by_one: float
    add_at_once: float
    add_in_bulk: float
    process: float
    latency_median: float
    """From `add` to the start of the handler, on an idle worker."""
    latency_p95: float


@click.command(
    epilog=examples("ropeway bench", "ropeway bench --url sqlite:////srv/jobs.db --jobs 5000", "ropeway bench --json")
)
@click.option("--jobs", type=click.IntRange(100, 1_000_000), default=2_000, show_default=True, help="How many to run.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Of the worker.")
@url_option
@json_option
def bench(jobs: int, concurrency: int, url: str | None, as_json: bool) -> None:
    """Measure the store on this machine.

    How many jobs a second can be added and processed, and how long one waits for an idle worker. Without a URL it uses
    a file of its own in the current folder; with one, a queue of its own in that store. Either is removed at the end.
    """
    if url:
        figures = loops.run(_measure(url, jobs, concurrency))
    else:
        # Not in the system's temporary folder, which is often in memory, and faster than any disk.
        with tempfile.TemporaryDirectory(prefix="ropeway-bench-", dir=Path.cwd()) as folder:
            figures = loops.run(_measure(f"sqlite:///{folder}/bench.db", jobs, concurrency))
    if as_json:
        click.echo(json_text(figures))
    else:
        _show(figures)


async def _measure(url: str, jobs: int, concurrency: int) -> Figures:
    few = max(jobs // 10, 50)
    async with _throw_away(url) as queue:
        one_by_one = await _rate(few, _add_one_by_one(queue, few))
        at_once = await _rate(jobs, _add_at_once(queue, jobs))
        in_bulk = await _rate(jobs, queue.add_many(["bench"] * jobs))
        process = await _rate(few + 2 * jobs, _process(queue, few + 2 * jobs, concurrency))
        latencies = sorted(await _latencies(queue))
        return Figures(
            store=queue.store.url,
            jobs=jobs,
            concurrency=concurrency,
            add_one_by_one=one_by_one,
            add_at_once=at_once,
            add_in_bulk=in_bulk,
            process=process,
            latency_median=round(statistics.median(latencies), 2),
            latency_p95=round(latencies[int(len(latencies) * 0.95)], 2),
        )


@asynccontextmanager
async def _throw_away(url: str) -> AsyncIterator[Queue]:
    async with opened(url, make=True) as store:
        queue = Queue(f"ropeway-bench-{new_token()[:8]}", store=store)
        try:
            yield queue
        finally:
            await queue.obliterate(force=True)


async def _rate(number: int, work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return round(number / (time.perf_counter() - began), 1)


async def _add_one_by_one(queue: Queue, number: int) -> None:
    for _ in range(number):
        await queue.add("bench")


async def _add_at_once(queue: Queue, number: int) -> None:
    await asyncio.gather(*(queue.add("bench") for _ in range(number)))


async def _process(queue: Queue, number: int, concurrency: int) -> None:
    left, done = number, asyncio.Event()

    async def handle(_: Job) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    async with Worker(queue, handle, concurrency=concurrency):
        await done.wait()


async def _latencies(queue: Queue) -> list[float]:
    began, latencies = 0.0, list[float]()
    started = asyncio.Event()

    async def handle(_: Job) -> None:
        latencies.append((time.perf_counter() - began) * 1000)
        started.set()

    async with Worker(queue, handle):
        for _ in range(_SAMPLES):
            started.clear()
            began = time.perf_counter()
            await queue.add("bench")
            await started.wait()
    return latencies


def _show(figures: Figures) -> None:
    click.echo(f"{figures.store}, {figures.jobs:,} jobs, concurrency {figures.concurrency}\n")
    show_table(
        [Column("measure", is_whole=True), Column("result", is_number=True), Column("unit")],
        [
            ["add, one after the other", f"{figures.add_one_by_one:,.0f}", "jobs/s"],
            ["add, many at once", f"{figures.add_at_once:,.0f}", "jobs/s"],
            ["add, one bulk", f"{figures.add_in_bulk:,.0f}", "jobs/s"],
            ["process", f"{figures.process:,.0f}", "jobs/s"],
            ["latency, median", f"{figures.latency_median:.1f}", "ms"],
            ["latency, 95 %", f"{figures.latency_p95:.1f}", "ms"],
        ],
    )
