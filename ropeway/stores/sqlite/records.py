"""remember, recall, forget: small versioned records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...job.instants import LAST_INSTANT, Milliseconds
from ...store.values import Record, Remembered
from .decoding import decoder
from .statements import statements
from .transaction import Transaction

_SQL: Final = statements("records")
_records: Final[Callable[[bytes], list[Record]]] = decoder(list[Record])


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


def recall(tx: Transaction, kind: str, key: str | None) -> list[Record]:
    return _records(tx.get(_SQL["recall"], {"kind": kind, "key": key, "now": tx.now()}))


def forget(tx: Transaction, kind: str, key: str) -> bool:
    return bool(tx.get(_SQL["forget"], {"kind": kind, "key": key, "now": tx.now()}))
