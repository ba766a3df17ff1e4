# /// script
# dependencies = ["starlette", "uvicorn", "uvloop"]
# [tool.benchmarks]
# title = "Ropeway"
# family = "http"
# role = "ours"
# durable = true
# checkout = true
# jobs = 10_000
# ///
"""`ropeway serve` on SQLite, called by a client in a process of its own."""

import asyncio
import itertools

from benchmarks import protocol, web
from benchmarks.web import Connection
from ropeway.server import broker
from ropeway.server.serving import Address, serving

QUEUE = "/v1/queues/bench"
BATCH = 100
CALLERS = 4
SERVED, MANY = (16, 64, 150), 750
"""Connections of callers that the server can serve, the best of which is its most, and five times the largest."""


async def serve(place):
    async with serving(broker(f"sqlite:///{place}/ropeway.db"), Address("127.0.0.1", 0)) as address:
        protocol.tell("ready")
        protocol.tell(address.port)
        await asyncio.Event().wait()


async def http_batches(place, seconds):
    """Jobs submitted, claimed and completed, 100 a request, from a few callers at once."""
    with web.served(place) as port, web.connections(port, CALLERS) as callers:
        watch = protocol.Stopwatch(seconds)

        async def one(caller):
            while not watch.over:
                jobs = [{"type": "noop", "payload": protocol.PAYLOAD}] * BATCH
                assert (await caller.post(f"{QUEUE}/batch", {"jobs": jobs}))[0] == 201
                _, claimed = await caller.post(f"{QUEUE}/claim", {"worker": "w", "count": BATCH})
                held = [{"id": job["id"], "token": job["token"]} for job in claimed["jobs"]]
                _, ended = await caller.post(f"{QUEUE}/complete", {"jobs": held})
                watch.count += sum(each["verdict"] == "done" for each in ended["jobs"])

        await asyncio.gather(*map(one, callers))
        return watch.rate()


async def submit(connection: Connection) -> bool:
    status, _ = await connection.post(f"{QUEUE}/jobs", {"type": "noop", "payload": protocol.PAYLOAD})
    return status == 201


async def http_submit(place, seconds):
    with web.served(place) as port:
        return await web.single(port, seconds, submit)


async def http_claim(place, seconds):
    async def claim(connection):
        status, answer = await connection.post(f"{QUEUE}/claim", {"worker": "w"})
        return status == 200 and len(answer["jobs"]) == 1

    with web.served(place) as port:
        await _fill(port, 20_000)
        return await web.single(port, seconds, claim)


async def http_complete(place, seconds):
    return await _with_held(place, seconds, "complete", repeats=False)


async def http_heartbeat(place, seconds):
    return await _with_held(place, seconds, "heartbeat", repeats=True)


async def http_overload(place, seconds):
    """What is carried out at the most that the server can do, and when many times as many callers ask.

    Each caller asks again at once when it was refused. Beside them a few complete jobs, as workers would.
    """
    added: list[str] = []

    async def add(connection):
        status, answer = await connection.post(f"{QUEUE}/jobs", {"type": "noop"})
        statuses[status] = statuses.get(status, 0) + 1
        if status == 201:
            added.append(answer["id"])
        return status == 201

    with web.served(place) as port:
        statuses: dict[int, int] = {}
        peaks = [(await web.most(port, seconds, add, number))["per_second"] for number in SERVED]
        peak = max(peaks)
        statuses.clear()
        held = await _held(port, 2_000, "beside")
        flood = asyncio.create_task(web.most(port, seconds, add, MANY))
        lost = 0
        with web.connections(port, 1) as [worker]:
            for job in held:
                if flood.done():
                    break
                status, _ = await worker.post(f"/v1/queues/beside/jobs/{job['id']}/complete", {"token": job["token"]})
                lost += status != 204
        done = (await flood)["per_second"]
        unexpected = sum(number for status, number in statuses.items() if status not in (201, 429, 503))
        missing = await _missing(port, added)
    return {
        "per_second": done,
        "peak_per_second": peak,
        "goodput_percent": 100 * done / peak,
        "refused_per_second": sum(statuses.get(status, 0) for status in (429, 503)) / seconds,
        "unexpected": unexpected,
        "lost": missing,
        "refused_completions": lost,
    }


async def _fill(port: int, number: int, queue: str = "bench") -> None:
    with web.connections(port, 1) as [connection]:
        for _ in range(number // 1_000):
            jobs = [{"type": "noop", "payload": protocol.PAYLOAD}] * 1_000
            assert (await connection.post(f"/v1/queues/{queue}/batch", {"jobs": jobs}))[0] == 201


async def _held(port: int, number: int, queue: str = "bench"):
    await _fill(port, number, queue)
    held: list[dict[str, str]] = []
    with web.connections(port, 1) as [connection]:
        while len(held) < number:
            body = {"worker": "w", "count": 1_000, "timeout": 600}
            _, claimed = await connection.post(f"/v1/queues/{queue}/claim", body)
            held += claimed["jobs"]
    return held


async def _with_held(place, seconds, verb, *, repeats):
    with web.served(place) as port:
        held = await _held(port, 20_000)
        jobs = itertools.cycle(held) if repeats else iter(held)

        async def request(connection):
            job = next(jobs)
            status, _ = await connection.post(f"{QUEUE}/jobs/{job['id']}/{verb}", {"token": job["token"]})
            return status == 204

        return await web.single(port, seconds, request)


async def _missing(port: int, added: list[str]) -> int:
    """How many acknowledged jobs the store does not have, by repeating their submission: each must be found."""
    missing = 0
    with web.connections(port, 1) as [connection]:
        for start in range(0, len(added), 1_000):
            jobs = [{"type": "noop", "id": id} for id in added[start : start + 1_000]]
            _, answer = await connection.post(f"{QUEUE}/batch", {"jobs": jobs})
            missing += sum(job["created"] for job in answer["jobs"])
    return missing


if __name__ == "__main__":
    protocol.answer(globals())
