"""All checks, from the outside of the store to the jobs in it."""

from __future__ import annotations

import asyncio
import time

from ...client.workers import read_workers
from ...errors import StoreError
from ...job.instants import Instant
from ...store.contract import Store
from ...store.inspection import Finding, Inspectable
from ..stores import known_queues
from ..text import length
from .queues import examine_queue

CLOCK_TOLERANCE = 5_000


async def examine(store: Store) -> list[Finding]:
    """Goes as far as it can: a store that is not there, or must be migrated first, is not opened."""
    findings: list[Finding] = []
    if isinstance(store, Inspectable):
        inspection = await asyncio.to_thread(store.inspect)
        findings += inspection.findings
        if not inspection.exists:
            remedy = "check --url, $ROPEWAY_URL and the current folder; the first job that is added makes it"
            return [Finding("store", "problem", "there is no store", remedy), *findings]
        if inspection.version != inspection.newest:
            return findings
    try:
        await store.open()
        return [Finding("store", "ok", "it can be opened"), *findings, *await _examine_contents(store)]
    except StoreError as error:
        return [Finding("store", "problem", str(error), "mend what it says, and look again"), *findings]
    finally:
        await store.close()


async def _examine_contents(store: Store) -> list[Finding]:
    now = await store.clock()
    findings = [examine_clock(now, time.time_ns() // 1_000_000)]
    workers = await read_workers(store)
    names = await known_queues(store, workers)
    for name in names:
        serving = [worker for worker in workers if name in worker.queues]
        findings += await examine_queue(store, name, serving, now)
    if not names:
        findings.append(Finding("queues", "ok", "none yet"))
    return findings


def examine_clock(store: Instant, wall: Instant) -> Finding:
    ahead = store - wall
    if abs(ahead) <= CLOCK_TOLERANCE:
        return Finding("clock", "ok", "the store's clock and this machine's agree")
    way = "ahead of" if ahead > 0 else "behind"
    return Finding(
        "clock",
        "warning",
        f"the store's clock is {length(abs(ahead) / 1000)} {way} this machine's",
        "set the machine's clock; a store's own never runs backwards, and waits until the time has caught up",
    )
