"""Jobs that hold a dedupe key, for the tests of dedupe."""

from __future__ import annotations

from ...job.dedupe import DedupeMode
from ...job.record import JobRecord, NewJob
from ...job.states import State
from ...store.contract import Store
from ...store.values import Added
from ..arrange import claim_one, read
from ..factories import (
    DAY,
    ELSEWHERE,
    NOW,
    QUEUE,
    complete,
    fail,
    keyed,
    new_flow,
    new_job,
)


async def offer(store: Store, *jobs: NewJob, now: int = NOW) -> list[Added]:
    """Adds jobs as one bundle."""
    [answers] = await store.add([list(jobs)], now=now)
    return answers


async def holder(store: Store, state: State, mode: DedupeMode = "until-final", ttl: int = 0) -> JobRecord:
    """A job that holds the key, or held it, in a state."""
    job = keyed("key", mode, ttl, id="holder", data='"old"', delay=DAY if state == "delayed" else 0)
    bundle = new_flow(job, new_job("child", queue=ELSEWHERE)) if state == "waiting-children" else [job]
    await store.add([bundle], now=NOW)
    if state == "cancelled":
        await store.cancel(QUEUE, ["holder"], now=NOW)
    elif state in ("active", "completed", "failed"):
        held = await claim_one(store)
        if state != "active":
            await store.settle(QUEUE, [complete(held) if state == "completed" else fail(held)], now=NOW)
    return await read(store, "holder")
