"""Small versioned records."""

from __future__ import annotations

from ...job.instants import LAST_INSTANT, Instant, Milliseconds
from ...store.values import BATCH, Record, Remembered
from .keys import Key, SortedKeys


class Records:
    __slots__ = ("_expiries", "_kinds")

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Record]] = {}
        self._expiries = SortedKeys()

    def remember(self, record: Record, expect: int | None, lasting: Milliseconds | None, now: Instant) -> Remembered:
        stored = self._find(record.kind, record.key, now)
        version = stored.version if stored else 0
        if expect is not None and expect != version:
            return Remembered("lost", stored)
        expires_at = None if lasting is None else min(now + lasting, LAST_INSTANT)
        written = Record(record.kind, record.key, record.value, version + 1, expires_at)
        self._drop(record.kind, record.key)
        self._kinds.setdefault(record.kind, {})[record.key] = written
        if expires_at is not None:
            self._expiries.add([_expiry(written)])
        return Remembered("done", written)

    def recall(self, kind: str, key: str | None, now: Instant) -> list[Record]:
        keys = sorted(self._kinds.get(kind, ())) if key is None else [key]
        return [record for each in keys if (record := self._find(kind, each, now))]

    def forget(self, kind: str, key: str, now: Instant) -> bool:
        is_there = self._find(kind, key, now) is not None
        self._drop(kind, key)
        return is_there

    def trim(self, now: Instant) -> None:
        for _, _, both in self._expiries.first(BATCH, before=(now + 1,)):
            kind, _, key = both.partition("\0")
            self._drop(kind, key)

    def _find(self, kind: str, key: str, now: Instant) -> Record | None:
        record = self._kinds.get(kind, {}).get(key)
        is_over = record is not None and record.expires_at is not None and record.expires_at <= now
        return None if is_over else record

    def _drop(self, kind: str, key: str) -> None:
        records = self._kinds.get(kind, {})
        record = records.pop(key, None)
        if record is not None and record.expires_at is not None:
            self._expiries.remove([_expiry(record)])
        if not records:
            self._kinds.pop(kind, None)


def _expiry(record: Record) -> Key:
    return (record.expires_at or 0, 0, f"{record.kind}\0{record.key}")
