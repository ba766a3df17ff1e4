"""Keyset pages of jobs.

A cursor is the sort key of the last job of its page, so jobs may be added, removed and moved between two pages.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ....job.instants import LAST_INSTANT
from ....job.numbers import whole
from ....job.record import JobRecord
from ....job.states import State, state_named
from ....store.commands import Find
from ....store.cursors import PairCursor, cursor_reader, states_left
from ....store.values import Page
from ..keys import Bound, Key
from ..queue_data import QueueData

STRIDE: Final = 2_000
"""Number of jobs that one step examines for a name or tag: a search for a rare one must not hold the lock for long."""

_read_cursor: Final = cursor_reader(PairCursor)


class Search:
    """Builds one page: call `look`, each time under the lock, until it answers."""

    def __init__(self, query: Find) -> None:
        self._query = query
        self._limit = whole("limit", query.limit, 1, 2**53)
        for state in query.states:
            state_named(state)
        start = _read_cursor(query)
        self._states = states_left(query, start)
        self._bound: Bound | None = (start.first, start.second) if start else None
        self._last = LAST_INSTANT
        """The last instant at which jobs may have ended."""
        self._found: list[tuple[State, Key, JobRecord]] = []

    def look(self, queue: QueueData) -> Page | None:
        """The page; None if it needs another call."""
        if self._query.stale:
            self._last = queue.settings.stages.stale_until if queue.settings.stages else -1
        passed = 0
        while self._states:
            if passed >= STRIDE and self._is_picky:
                return None
            passed += self._pass(queue, self._states[0])
            if len(self._found) > self._limit:
                state, key, _ = self._found[self._limit - 1]
                return Page(self._jobs(), str(PairCursor(state, key[0], key[1])))
        return Page(self._jobs())

    def _jobs(self) -> list[JobRecord]:
        jobs = [job for _, _, job in self._found[: self._limit]]
        return [replace(job, marks=()) if job.marks else job for job in jobs]

    @property
    def _is_picky(self) -> bool:
        return self._query.name is not None or self._query.tag is not None

    def _wants(self, job: JobRecord) -> bool:
        name, tag = self._query.name, self._query.tag
        return (name is None or job.name == name) and (tag is None or tag in job.tags)

    def _pass(self, queue: QueueData, state: State) -> int:
        """Examines some jobs of a state, and proceeds to the next state after its last job."""
        keys = queue.index(state).keys
        count = STRIDE if self._is_picky else self._limit + 1 - len(self._found)
        ask = keys.back_from if self._query.newest_first else keys.after
        bound = self._bound
        if bound is None and self._query.stale and self._query.newest_first:
            bound = (self._last + 1,)
        passed = [key for key in ask(bound, count) if not self._query.stale or key[0] <= self._last]
        jobs = ((key, queue.jobs[key[2]]) for key in passed)
        self._found.extend((state, key, job) for key, job in jobs if self._wants(job))
        if len(passed) < count:
            del self._states[0]
            self._bound = None
        else:
            self._bound = passed[-1][:2]
        return len(passed)
