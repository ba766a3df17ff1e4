"""What outcomes need to know of claimed jobs: remembered since their claim, or read again."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable
from time import monotonic
from typing import Final, NamedTuple

from ..job.backoff import Backoff
from ..job.failure import Failure
from ..job.instants import Milliseconds
from ..job.options import StoredOptions, readable_options
from ..job.outcomes import Outcome, attempts_remain
from ..job.record import JobRecord
from ..job.retention import KEEP_COMPLETED, KEEP_FAILED
from ..store.contract import Store
from ..store.values import Lock

MOST_REMEMBERED: Final = 50_000
UNKNOWN_BACKOFF: Final = Backoff.exponential(1, max_delay=60)
"""Instead of a custom one, which only workers in Python know."""


class Facts(NamedTuple):
    options: StoredOptions
    attempts_made: int
    worker: str
    began: float | None
    """When the attempt began, on the monotonic clock; None if it has ended."""

    @property
    def attempt(self) -> int:
        return self.attempts_made + 1


class HeldJobs:
    """Facts about the jobs that this server gave to workers; of others the store is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._facts: OrderedDict[tuple[str, str, str], Facts] = OrderedDict()

    def note(self, record: JobRecord) -> Facts:
        facts = _facts_of(record, monotonic())
        self._facts[record.queue, record.id, record.token or ""] = facts
        if len(self._facts) > MOST_REMEMBERED:
            self._facts.popitem(last=False)
        return facts

    def forget(self, queue: str, lock: Lock) -> None:
        self._facts.pop((queue, lock.id, lock.token), None)

    def known(self, queue: str, lock: Lock) -> Facts | None:
        """Facts of a job that this server gave out, without asking the store."""
        return self._facts.get((queue, lock.id, lock.token))

    async def facts(self, queue: str, locks: Iterable[Lock]) -> dict[Lock, Facts]:
        """Without those of jobs that are gone, or are held by another token."""
        found: dict[Lock, Facts] = {}
        unknown = []
        for lock in locks:
            facts = self.known(queue, lock)
            if facts is None:
                unknown.append(lock)
            else:
                found[lock] = facts
        if unknown:
            records = await self._store.get(queue, [lock.id for lock in unknown])
            now, clock = monotonic(), await self._store.clock()
            for lock, record in zip(unknown, records, strict=True):
                # A final one too: the answer to its first call may have been lost.
                if record is not None and record.token == lock.token:
                    ago = (clock - (record.started_at or clock)) / 1000
                    found[lock] = _facts_of(record, now - ago if record.state == "active" else None)
        return found


def _facts_of(record: JobRecord, began: float | None) -> Facts:
    return Facts(readable_options(record.options), record.attempts_made, record.worker or "", began)


def completed(lock: Lock, facts: Facts | None, result: str | None) -> Outcome:
    keep = KEEP_COMPLETED if facts is None else facts.options.keep_completed or KEEP_COMPLETED
    return Outcome(lock.id, lock.token, "complete", result, keep=keep)


def failed(
    lock: Lock, facts: Facts | None, failure: Failure, *, delay: Milliseconds | None = None, retry: bool = True
) -> Outcome:
    """A retry while attempts remain, after `delay` or the job's own backoff; otherwise the end."""
    options, made = (StoredOptions(), 0) if facts is None else (facts.options, facts.attempts_made)
    exhausted = not attempts_remain(options, made)
    if exhausted or not retry:
        keep = options.keep_failed or KEEP_FAILED
        return Outcome(
            lock.id,
            lock.token,
            "fail",
            failure=failure,
            keep=keep,
            exhausted=exhausted,
            stack_traces=options.stack_traces,
        )
    if delay is None:
        backoff = options.backoff
        if backoff is not None and backoff.kind == "custom":
            backoff = UNKNOWN_BACKOFF
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        delay = 0 if backoff is None else backoff.after(made + 1, luck)
    return Outcome(lock.id, lock.token, "retry", failure=failure, delay=delay, stack_traces=options.stack_traces)
