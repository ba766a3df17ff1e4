"""Timings of a queue, in the store: a record for each hour, which workers add to."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from ..job.instants import Instant, Milliseconds
from ..job.timings import Timings
from ..store.contract import Store
from ..store.values import Record

KIND: Final = "timings"
MINUTE: Final[Milliseconds] = 60_000
HOUR: Final[Milliseconds] = 60 * MINUTE
KEPT: Final[Milliseconds] = 14 * 24 * HOUR
MOST_TRIES: Final = 20
"""Tries of a write that others get ahead of."""

_decode: Final = msgspec.json.Decoder(dict[int, Timings]).decode


class MinuteTimings(NamedTuple):
    minute: Instant
    timings: Timings


async def add_timings(store: Store, queue: str, timings: Timings) -> None:
    """Adds what was observed to the current minute. If other workers write all the time, it is given up."""
    now = await store.clock()
    key, minute = _key(queue, now - now % HOUR), now % HOUR // MINUTE
    for _ in range(MOST_TRIES):
        found = await store.recall(KIND, key)
        minutes = _minutes(found[0]) if found else {}
        minutes.setdefault(minute, Timings()).add(timings)
        record = Record(KIND, key, msgspec.json.encode(minutes).decode())
        expect = found[0].version if found else 0
        if (await store.remember(record, expect=expect, lasting=KEPT)).verdict == "done":
            return


async def read_timings(store: Store, queue: str, since: Instant) -> list[MinuteTimings]:
    """Minutes in which something was observed, oldest first, from the one of `since` on."""
    now = await store.clock()
    first = max(since, now - KEPT)
    first -= first % MINUTE
    read = []
    for hour in range(first - first % HOUR, now + 1, HOUR):
        for record in await store.recall(KIND, _key(queue, hour)):
            minutes = sorted(_minutes(record).items())
            read += [MinuteTimings(hour + minute * MINUTE, timings) for minute, timings in minutes]
    return [each for each in read if each.minute >= first]


def _key(queue: str, hour: Instant) -> str:
    return f"{queue}:{hour}"


def _minutes(record: Record) -> dict[int, Timings]:
    try:
        return _decode(record.value)
    except msgspec.MsgspecError:
        # Of another version, or damaged: what is added begins again.
        return {}
