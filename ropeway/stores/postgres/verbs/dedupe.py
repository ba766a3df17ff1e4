"""Commands on dedupe keys."""

from __future__ import annotations

from ....job.instants import Instant
from ....store.commands import ReadDedupe, ReleaseDedupe
from ....store.values import KeyHolder
from ..executor import Executor
from ..parameters import number, text


async def dedupe(on: Executor, command: ReadDedupe, now: Instant | None) -> KeyHolder | None:
    for row in await on.call("dedupe", text(command.queue), text(command.key), number(now)):
        return KeyHolder(*row)
    return None


async def release_dedupe(on: Executor, command: ReleaseDedupe, now: Instant | None) -> bool:
    queue = command.queue
    [was_held] = await on.call_and_notify("release_dedupe", [queue], now, text(queue), text(command.key))
    return bool(was_held)
