"""remember, recall, forget: small versioned records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...job.instants import LAST_INSTANT, Milliseconds
from ...store import commands
from ...store.values import Record, Remembered
from .decoding import decoder
from .statements import statements
from .transaction import Transaction
from .verbs import reads, writes

_SQL: Final = statements("records")
_records: Final[Callable[[bytes], list[Record]]] = decoder(list[Record])


@writes(commands.Remember)
def remember(tx: Transaction, record: Record, expect: int | None, lasting: Milliseconds | None) -> Remembered:
    there = recall(tx, record.kind, record.key)
    version = there[0].version if there else 0
    if expect is not None and expect != version:
        return Remembered("lost", there[0] if there else None)
    expires_at = None if lasting is None else min(tx.now() + lasting, LAST_INSTANT)
    written = Record(record.kind, record.key, record.value, version + 1, expires_at)
    tx.run(
        _SQL["remember"],
        {
            "kind": written.kind,
            "key": written.key,
            "value": written.value,
            "version": written.version,
            "expires_at": written.expires_at,
        },
    )
    return Remembered("done", written)


@reads(commands.Recall, sees_inbox=False)
def recall(tx: Transaction, kind: str, key: str | None) -> list[Record]:
    return _records(tx.get(_SQL["recall"], {"kind": kind, "key": key, "now": tx.now()}))


@writes(commands.Forget)
def forget(tx: Transaction, kind: str, key: str) -> bool:
    return bool(tx.get(_SQL["forget"], {"kind": kind, "key": key, "now": tx.now()}))
