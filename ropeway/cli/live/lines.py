"""The view without a terminal: lines of text or JSON, for other programs and logs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TextIO

import msgspec

from ..text import as_json, iso
from .gathering import Gatherer
from .picture import Picture, QueuePicture
from .pictures import pictures
from .signals import ending, until
from .texts import one_line, seconds, time_of_day


async def follow(gatherer: Gatherer, interval: float, written: Callable[[Picture], str], out: TextIO) -> int:
    """Writes every picture until a signal arrives; returns the exit code."""

    async def write() -> None:
        async for picture in pictures(gatherer, interval):
            out.write(written(picture))
            out.flush()

    with ending() as end:
        return await until(end, asyncio.create_task(write()))


def json_line(picture: Picture) -> str:
    document = msgspec.to_builtins(picture)
    for dated in (document, *document["events"], *document["failures"], *document["next_runs"]):
        dated["at"] = iso(dated["at"])
    return f"{as_json(document)}\n"


def plain_lines(picture: Picture, encoding: str = "utf-8") -> str:
    """A line for each queue, or one that the store is unavailable or empty."""
    time = time_of_day(picture.at)
    if picture.trouble is not None:
        said = [f"store lost: {picture.trouble}"]
    else:
        said = [_queue_line(queue) for queue in picture.queues] or ["no queues"]
        said += [f"{queue}: no such queue yet" for queue in picture.unknown_queues]
    return "".join(f"{one_line(f'{time} {each}', encoding)}\n" for each in said)


def _queue_line(queue: QueuePicture) -> str:
    rates, latency = queue.rates, queue.latency
    parts = [
        queue.name,
        "paused" if queue.paused else "",
        *(f"{state}={count}" for state, count in queue.counts.items() if count or state in ("waiting", "active")),
        f"added/s={rates.added:.1f} completed/s={rates.completed:.1f} failed/s={rates.failed:.1f}",
        "" if queue.oldest_waiting is None else f"oldest={seconds(queue.oldest_waiting)}",
        f"p50={seconds(latency.p50)} p95={seconds(latency.p95)}" if latency else "",
        "events-missed" if queue.missed_events else "",
    ]
    return " ".join(filter(None, parts))
