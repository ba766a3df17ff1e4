# /// script
# dependencies = ["h11", "jinja2", "jsonschema-rs", "starlette", "uvicorn", "uvloop"]
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
import itertools
import random
import statistics
import time

import msgspec
from msgspec.structs import replace

from benchmarks import dashboards, protocol
from ropeway import Flow, Phase, Pipeline, Queue, Webhook, Worker
from ropeway.job.schedules import ScheduleState
from ropeway.job.webhooks import DELIVERIES
from ropeway.store.values import ScheduleWrite

DEDUPED = 20
"""Adds one by one in each turn, with and without a key."""


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


async def add_one_deduped(place, seconds):
    """Beside adds without a key, in turns."""
    keys = itertools.count()
    async with open_queue(place) as queue:

        async def plain():
            for _ in range(DEDUPED):
                await queue.add("noop", protocol.PAYLOAD)

        async def deduped():
            for _ in range(DEDUPED):
                await queue.add("noop", protocol.PAYLOAD, dedupe=f"user:{next(keys)}")

        return await protocol.compare(seconds, plain, deduped, each=DEDUPED)


async def add_bulk_deduped(place, seconds):
    """Beside bulks without keys, in turns."""
    keys = itertools.count()
    plain = [("noop", protocol.PAYLOAD)] * protocol.BULK
    deduped: list[tuple[str, object, dict[str, str]]] = []

    def make():
        deduped[:] = [("noop", protocol.PAYLOAD, {"dedupe": f"user:{next(keys)}"}) for _ in range(protocol.BULK)]

    async with open_queue(place) as queue:
        return await protocol.compare(
            seconds, lambda: queue.add_many(plain), lambda: queue.add_many(deduped), protocol.BULK, make
        )


async def put_schedules(place, n, every, apart):
    """Stores n schedules of so many seconds, whose ticks are so many milliseconds apart."""
    async with open_queue(place) as queue:
        await queue.schedule("s", "noop", protocol.PAYLOAD, every=every)
        [first] = await queue.store.schedules(queue.name)
        state = msgspec.json.decode(first.value, type=ScheduleState)
        await queue.schedules.remove("s")
        now = await queue.store.clock()
        for begin in range(0, n, protocol.BULK):
            states = [
                replace(state, rule=replace(state.rule, offset=number * apart % (every * 1000)))
                for number in range(begin, min(n, begin + protocol.BULK))
            ]
            writes = [
                ScheduleWrite(f"s-{begin + place}", msgspec.json.encode(one).decode(), one.next_after(now))
                for place, one in enumerate(states)
            ]
            await queue.store.write_schedules(queue.name, writes)
    return {}


async def ticks(place, seconds):
    """How late handlers of scheduled jobs begin."""
    found = []

    async def handler(job):
        at = int(job.id.rpartition(":")[2])
        found.append((at, time.time() * 1000 - at))

    async with open_queue(place) as queue, Worker(queue, handler, concurrency=100):
        # What was due before, and all that starts with a worker, is not counted.
        await asyncio.sleep(2)
        begun = time.time() * 1000
        watch = protocol.Stopwatch(seconds)
        await asyncio.sleep(seconds + 0.2)
        busy = watch.busy_percent
    late = [late for at, late in found if begun <= at < begun + seconds * 1000]
    return {**protocol.percentiles(late), "jobs": len(late), "cpu_percent": busy}


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


async def compare_pipelines(place, n, phases, turns, result=None):
    """Runs n plain jobs, and n pipelines of so many phases, in turns: how many times as long these take, by medians.

    All of them, and each phase, return the result. The first turn is not counted.
    """

    async def plain(_):
        return result

    async def phase(job, ctx):
        return result

    pipeline = Pipeline([Phase(f"phase-{number}", phase) for number in range(phases)])
    per_second: dict[object, list[float]] = {plain: [], pipeline: []}
    for _ in range(1 + turns):
        for handler, rates in per_second.items():
            answer = await run_to_the_end(place, n, handler, 600)
            rates.append(answer["per_second"])
    of_plain, of_pipelines = (statistics.median(rates[1:]) for rates in per_second.values())
    return {"per_second": of_pipelines, "plain_per_second": of_plain, "times": of_plain / of_pipelines}


async def run_steps(place, n, steps, seconds):
    """Runs handlers with so many steps, for a time at most; the rate is that of steps."""

    async def handler(job):
        for number in range(steps):
            await job.step(f"step-{number}", no_step, number)

    answer = await run_to_the_end(place, n, handler, seconds)
    return {"per_second": steps * answer["per_second"], "cpu_us": answer["cpu_us"] / steps}


async def no_step(number):
    return number


async def run_to_the_end(place, n, handler, seconds):
    async with open_queue(place) as queue:
        await add_in_bulk(queue, [("noop", protocol.PAYLOAD)] * n)
    async with open_queue(place) as queue:
        await queue.counts()
        watch = protocol.Stopwatch(seconds)
        async with Worker(queue, handler, concurrency=100):
            while watch.count < n and not watch.over:
                await asyncio.sleep(0.005)
                counts = await queue.counts()
                watch.count = n - counts["waiting"] - counts["active"]
            return watch.rate()


async def deliver_webhooks(place, n, seconds):
    """Delivers messages about so many ended jobs to a receiver in another process."""
    with protocol.beside("receive") as told:
        port = int(told())
        webhook = Webhook(f"http://localhost:{port}/", secret="of some length at least", allow_hosts=["localhost"])
        async with open_queue(place, webhook=webhook) as queue:
            await queue.add_many([("noop", protocol.PAYLOAD)] * n)
            async with Worker(queue, nothing, concurrency=100, webhooks=False):
                while (await queue.counts())["completed"] < n:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.02)
            deliveries = Queue(DELIVERIES, store=queue.store)
            watch = protocol.Stopwatch(seconds)
            async with Worker(queue, nothing):
                while watch.count < n and not watch.over:
                    await asyncio.sleep(0.02)
                    watch.count = (await deliveries.counts())["completed"]
                return watch.rate()


class Receiver(asyncio.Protocol):
    """Answers each request with 200, as cheaply as may be."""

    def connection_made(self, transport):
        self.transport = transport
        self.received = b""

    def data_received(self, data):
        self.received += data
        while (head := self.received.find(b"\r\n\r\n")) >= 0:
            length = int(self.received[:head].partition(b"content-length: ")[2].partition(b"\r\n")[0])
            end = head + 4 + length
            if len(self.received) < end:
                return
            self.received = self.received[end:]
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")


async def receive():
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    protocol.tell("ready")
    protocol.tell(server.sockets[0].getsockname()[1])
    await server.serve_forever()


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


fill_dashboard, dashboard = dashboards.fill, dashboards.pages
dashboard_idle, look_on = dashboards.idle, dashboards.look_on

if __name__ == "__main__":
    protocol.answer(globals())
