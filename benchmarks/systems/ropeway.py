# /// script
# dependencies = ["uvloop"]
#
# [tool.benchmarks]
# title = "Ropeway"
# family = "sqlite"
# role = "ours"
# durable = true
# checkout = true
# note = "as it comes: durable, on uvloop, concurrency 100"
# jobs = 20_000
# ///
"""Ropeway in its own manner: `async` all the way."""

import asyncio
import random

from benchmarks import protocol
from ropeway import Flow, Queue, Worker


def open_queue(place, **defaults):
    return Queue("bench", url=place if "://" in place else f"sqlite:///{place}/ropeway.db", **defaults)


async def nothing(_):
    pass


async def add_one(place, seconds):
    async with open_queue(place) as queue:
        return await protocol.repeat_async(seconds, lambda: queue.add("noop", protocol.PAYLOAD))


def add_one_sync(place, seconds):
    with open_queue(place).sync as queue:
        return protocol.repeat(seconds, lambda: queue.add("noop", protocol.PAYLOAD))


def add_one_beside(place, seconds):
    with protocol.beside("work", place=place):
        return add_one_sync(place, seconds)


async def work(place):
    async with open_queue(place) as queue, Worker(queue, nothing, concurrency=100):
        protocol.tell("ready")
        await asyncio.Event().wait()


async def add_bulk(place, seconds):
    jobs = [("noop", protocol.PAYLOAD)] * protocol.BULK
    async with open_queue(place) as queue:
        return await protocol.repeat_async(seconds, lambda: queue.add_many(jobs), each=protocol.BULK)


async def add_concurrent(place, seconds):
    async with open_queue(place) as queue:
        return await protocol.repeat_at_once(seconds, lambda: queue.add("noop", protocol.PAYLOAD))


async def fill(place, n, **defaults):
    await add_in_bulk(open_queue(place, **defaults), [("noop", protocol.PAYLOAD)] * n)
    return {}


async def fill_kept(place, n):
    return await fill(place, n, remove_on_complete=False)


async def fill_prioritized(place, n):
    jobs = [("noop", protocol.PAYLOAD, {"priority": random.randrange(1_000)}) for _ in range(n)]
    await add_in_bulk(open_queue(place), jobs)
    return {}


async def fill_delayed(place, n):
    await add_in_bulk(open_queue(place), [("noop", protocol.PAYLOAD, {"delay": "1 day"})] * n)
    return {}


async def add_in_bulk(queue, jobs):
    async with queue:
        for first in range(0, len(jobs), protocol.BULK):
            await queue.add_many(jobs[first : first + protocol.BULK])


async def process(place, n, seconds):
    return await process_at(place, n, seconds, concurrency=100)


async def process_typed(place, n, seconds):
    return await process_at(place, n, seconds, concurrency=100, typed=True)


async def process_at(place, n, seconds, concurrency, typed=False):
    started = 0
    enough = asyncio.Event()

    def count():
        nonlocal started
        started += 1
        if started >= n:
            enough.set()

    async def handler(_):
        count()

    async def noop(n: int, to: str) -> None:
        count()

    async def unsettled():
        counts = await queue.counts()
        return counts["waiting"] + counts["active"]

    async with open_queue(place) as queue:
        before = await unsettled()
        if typed:
            queue.task(noop)
        watch = protocol.Stopwatch(seconds)
        async with Worker(queue, None if typed else handler, concurrency=concurrency):
            await asyncio.wait([asyncio.create_task(enough.wait())], timeout=seconds)
            while True:
                watch.count = before - await unsettled()
                if watch.count >= n or watch.over:
                    return watch.rate()


async def run_flows(place, n, children):
    """Adds n jobs in families of so many children, or without parents, and runs all to the end."""
    parents = n // children if children else 0
    ended = asyncio.Event()
    started = 0

    async def handler(_):
        nonlocal started
        started += 1
        if started == n + parents:
            ended.set()

    async def unsettled():
        counts = await queue.counts()
        return sum(counts[state] for state in ("waiting", "waiting-children", "active"))

    async with open_queue(place) as queue:
        await queue.counts()
        adding = protocol.Stopwatch(0)
        if children:
            for first in range(0, parents, each := max(1, protocol.BULK // children)):
                await queue.add_flows([family(children) for _ in range(min(each, parents - first))])
        else:
            for _ in range(0, n, protocol.BULK):
                await queue.add_many([("noop", protocol.PAYLOAD)] * min(protocol.BULK, n))
        added = adding.elapsed
        async with Worker(queue, handler, concurrency=100):
            await ended.wait()
            while await unsettled():
                pass
        return protocol.parts(n, added, adding.elapsed)


def family(children):
    return Flow("noop", protocol.PAYLOAD, children=[Flow("noop", protocol.PAYLOAD) for _ in range(children)])


async def latency(place, seconds, watch=protocol.latencies_async):
    samples: asyncio.Queue[float] = asyncio.Queue()

    async def handler(job):
        samples.put_nowait(protocol.since(job.data))

    async with open_queue(place) as queue, Worker(queue, handler):
        return await watch(seconds, lambda sent: queue.add("noop", sent), samples.get)


async def latency_paced(place, seconds):
    return await latency(place, seconds, protocol.paced_async)


async def latency_apart(place, seconds):
    async with open_queue(place) as queue:
        with protocol.beside("listen", place=place) as sample:
            return await protocol.latencies_async(
                seconds, lambda sent: queue.add("noop", sent), lambda: asyncio.to_thread(sample)
            )


async def listen(place):
    async def handler(job):
        protocol.tell(protocol.since(job.data))

    async with open_queue(place) as queue, Worker(queue, handler):
        protocol.tell("ready")
        await asyncio.Event().wait()


async def idle(place, seconds):
    async with open_queue(place) as queue, Worker(queue, nothing):
        return await asyncio.to_thread(protocol.idle_cost, seconds)


async def idle_paused(place, seconds):
    async with open_queue(place) as queue:
        await queue.pause()
        async with Worker(queue, nothing):
            cost = await asyncio.to_thread(protocol.idle_cost, seconds)
        await queue.resume()
        return cost


if __name__ == "__main__":
    protocol.answer(globals())
