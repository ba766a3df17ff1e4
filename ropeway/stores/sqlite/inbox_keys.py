"""Dedupe keys of jobs that go through the inbox.

A job with a key may be put into the ring if the key is free: then the answer is known, and the job needs no transaction
of its own. Whoever puts one holds SQLite's write lock meanwhile. So nobody takes the key between the look and the put,
and every transaction that begins later ingests the ring first, and finds the key held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from ...job.record import NewJob
from .adding import Acknowledged
from .statements import statements
from .transaction import Transaction

if TYPE_CHECKING:
    from .inbox import Inbox

_SQL: Final = statements("dedupe")

QueueKey: TypeAlias = tuple[str, str]
"""A queue, and a dedupe key of it."""


def keys_of(acknowledged: Iterable[Acknowledged]) -> list[QueueKey]:
    return [
        (job.queue, job.extras.dedupe.key)
        for job, _ in acknowledged
        if job.extras is not None and job.extras.dedupe is not None
    ]


class InboxKeys:
    """The keys of jobs that are in the ring and not yet in the tables. Use it in a write transaction."""

    def __init__(self, read: Callable[[bytes], Sequence[Acknowledged]]) -> None:
        self._read = read
        self._keys: set[QueueKey] = set()
        self._seen = 0
        """Position up to which records are known."""

    def are_free(self, tx: Transaction, inbox: Inbox, jobs: Sequence[Acknowledged]) -> bool:
        """True if nobody holds one of the jobs' keys, in the tables or in the ring, and no two have the same."""
        self._look(inbox, tx.ingested())
        keys = keys_of(jobs)
        distinct = {*keys}
        return (
            len(distinct) == len(keys)
            and self._keys.isdisjoint(distinct)
            and not any(_is_taken(tx, job) for job, _ in jobs)
        )

    def _look(self, inbox: Inbox, ingested: int) -> None:
        """Reads what was put since, by any process."""
        if ingested >= self._seen:
            self._keys, self._seen = set(), ingested
        bodies, self._seen = inbox.read(self._seen)
        for body in bodies:
            self._keys.update(keys_of(self._read(body)))


def _is_taken(tx: Transaction, job: NewJob) -> bool:
    """True if the job's key is held, or the call repeats one that added the job."""
    if job.extras is None or (rule := job.extras.dedupe) is None:
        return False
    return bool(tx.get(_SQL["is_taken"], {"queue": job.queue, "key": rule.key, "id": job.id}))
