"""All checks of `ropeway doctor`, from the store's environment to its jobs."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from ..client.workers import known_queues, read_workers
from ..errors import StoreError
from ..job.instants import Instant
from ..showing import length
from ..store.contract import Store
from ..store.inspection import Finding
from .queues import examine_queue

CLOCK_TOLERANCE: Final = 5_000
NOT_MADE: Final = Finding("store", "ok", "it is not made yet; adding a first job does that")
OPENED: Final = Finding("store", "ok", "it can be opened")
NO_QUEUES: Final = Finding(
    "queues", "warning", "there is none yet", "if there should be: check --url, $ROPEWAY_URL and the current folder"
)


async def examine(store: Store) -> list[Finding]:
    """Runs as many checks as possible: a store that does not exist, or must be migrated first, is not opened."""
    findings: list[Finding] = []
    if (inspectable := store.offers.inspection) is not None:
        inspection = await asyncio.to_thread(inspectable.inspect)
        findings += inspection.findings
        if not inspection.exists:
            return findings if _has_problem(findings) else [NOT_MADE, *findings, NO_QUEUES]
        if inspection.version != inspection.newest:
            return findings
    try:
        await store.open()
        return [OPENED, *findings, *await _examine_contents(store)]
    except StoreError as error:
        return [Finding("store", "problem", str(error), "mend what it says, and look again"), *findings]
    finally:
        await store.close()


async def examine_open(store: Store) -> list[Finding]:
    """The checks of a store that is open already, without those of its queues."""
    inspectable = store.offers.inspection
    found = [] if inspectable is None else (await asyncio.to_thread(inspectable.inspect)).findings
    return [OPENED, *found, examine_clock(await store.clock(), time.time_ns() // 1_000_000)]


def _has_problem(findings: list[Finding]) -> bool:
    return any(finding.level == "problem" for finding in findings)


async def _examine_contents(store: Store) -> list[Finding]:
    now = await store.clock()
    findings = [examine_clock(now, time.time_ns() // 1_000_000)]
    workers = await read_workers(store)
    names = await known_queues(store, workers)
    for name in names:
        serving = [worker for worker in workers if name in worker.queues]
        findings += await examine_queue(store, name, serving, now)
    if not names:
        findings.append(NO_QUEUES)
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
