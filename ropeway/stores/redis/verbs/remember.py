"""Commands on small versioned records, such as the presence of a worker."""

from __future__ import annotations

from typing import Final

import msgspec

from ....job.instants import Instant
from ....store.commands import Forget, Recall, Remember
from ....store.values import Record, Remembered
from ..encoding import given, pack
from ..executor import Executor
from ..failures import reading

_record: Final = msgspec.msgpack.Decoder(tuple[int, int | bool, str]).decode


async def remember(on: Executor, command: Remember, now: Instant | None) -> Remembered:
    record = command.record
    arguments = (
        given(now),
        record.kind,
        record.key,
        record.value,
        False if command.expect is None else command.expect,
        False if command.lasting is None else command.lasting,
    )
    keys = on.keys.kind(record.kind), on.keys.expiring
    is_done, stored = await on.call("remember", keys, pack(arguments))
    current = _record_of(record.kind, record.key, stored) if stored else None
    return Remembered("done" if is_done else "lost", current)


async def recall(on: Executor, command: Recall, now: Instant | None) -> list[Record]:
    arguments = pack((given(now), False if command.key is None else command.key))
    place = on.keys.kind(command.kind)
    instant, found = await on.call("recall", (place,), arguments)
    records = []
    for name, packed in zip(found[::2], found[1::2], strict=True):
        with reading(on.target.url, f"the record {name.decode(errors='replace')!r} in {place}"):
            records.append(_record_of(command.kind, name.decode(), packed))
    return [record for record in records if record.expires_at is None or record.expires_at > instant]


async def forget(on: Executor, command: Forget, _: Instant | None) -> bool:
    keys = on.keys.kind(command.kind), on.keys.expiring
    return bool(await on.call("forget", keys, pack((command.kind, command.key))))


def _record_of(kind: str, key: str, packed: bytes) -> Record:
    version, expires_at, value = _record(packed)
    return Record(kind, key, value, version, expires_at or None)
