"""Commands on small versioned records."""

from __future__ import annotations

from ....job.instants import Instant
from ....store.commands import Forget, Recall, Remember
from ....store.values import Record, Remembered
from ..executor import Executor
from ..parameters import number, text


async def remember(on: Executor, command: Remember, now: Instant | None) -> Remembered:
    record = command.record
    [(is_done, value, version, expires_at)] = await on.call(
        "remember",
        text(record.kind),
        text(record.key),
        text(record.value),
        number(command.expect),
        number(command.lasting),
        number(now),
    )
    stored = None if version is None else Record(record.kind, record.key, value, version, expires_at)
    return Remembered("done" if is_done else "lost", stored)


async def recall(on: Executor, command: Recall, now: Instant | None) -> list[Record]:
    rows = await on.call("recall", text(command.kind), text(command.key), number(now))
    return [Record(command.kind, *row) for row in rows]


async def forget(on: Executor, command: Forget, _: Instant | None) -> bool:
    [(was_there,)] = await on.call("forget", text(command.kind), text(command.key))
    return bool(was_there)
