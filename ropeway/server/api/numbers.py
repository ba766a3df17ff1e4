"""Numbers of queues: counts per minute, and of all queues together."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from typing import Final

import msgspec

from ...job.instants import instant_of, moment_of
from ...job.states import STATES, State
from ...store.values import Metric
from ..routes import Call, Route
from .queues import is_shown

STATS_SECONDS: Final = 1.0
"""How long totals are not computed again."""


class MetricsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: datetime | None = None


class Minute(msgspec.Struct, frozen=True):
    """Counts of one minute."""

    at: datetime
    added: int
    completed: int
    failed: int
    retried: int
    stalled: int
    cancelled: int
    removed: int


class Minutes(msgspec.Struct, frozen=True):
    minutes: list[Minute]


class Stats(msgspec.Struct, frozen=True):
    """Of the queues that the caller reaches."""

    queues: int
    counts: dict[State, int]
    """Jobs by state."""
    totals: dict[str, int]
    """What happened in the last two weeks, for which the store keeps counts."""
    refused_requests: int
    """Because of too much load, since this server started."""
    waiting_requests: int


async def metrics(call: Call) -> Minutes:
    since: datetime | None = call.query.since
    found = await call.store.metrics(call.queue.name, since=0 if since is None else instant_of(since, "since"))
    return Minutes([_minute(metric) for metric in found])


async def stats(call: Call) -> Stats:
    # Those that are empty have numbers too.
    known = {*await call.store.queues(), *call.broker.upkeep.queues}
    names = [name for name in known if is_shown(call, name)]
    counts: Counter[State] = Counter()
    totals: Counter[str] = Counter()
    for name in names:
        sums = await _sums(call, name)
        counts.update(sums[0])
        totals.update(sums[1])
    admission = call.broker.admission
    kinds = [field for field in Metric.__struct_fields__ if field != "minute"]
    return Stats(
        len(names),
        {state: counts[state] for state in STATES},
        {kind: totals[kind] for kind in kinds},
        admission.refused,
        admission.waiting,
    )


async def _sums(call: Call, name: str) -> tuple[dict[State, int], dict[str, int]]:
    known = call.broker.sums.get(name)
    if known is not None and time.monotonic() - known[0] < STATS_SECONDS:
        return known[1], known[2]
    counts = await call.store.count(name)
    totals: Counter[str] = Counter()
    for metric in await call.store.metrics(name):
        for kind in metric.__struct_fields__[1:]:
            totals[kind] += getattr(metric, kind)
    call.broker.sums[name] = time.monotonic(), counts, dict(totals)
    return counts, dict(totals)


def _minute(metric: Metric) -> Minute:
    counts = {field: getattr(metric, field) for field in Minute.__struct_fields__ if field != "at"}
    return Minute(at=moment_of(metric.minute), **counts)


_QUEUE: Final = "/v1/queues/{queue}"


ROUTES: Final = (
    Route(
        "GET",
        "/v1/stats",
        stats,
        ("follow",),
        "Numbers of all queues together.",
        "filtered",
        answer=Stats,
        tag="queues",
    ),
    Route(
        "GET",
        f"{_QUEUE}/metrics",
        metrics,
        ("read",),
        "Counts per minute, oldest first.",
        query=MetricsQuery,
        answer=Minutes,
        tag="queues",
    ),
)
