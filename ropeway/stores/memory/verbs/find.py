"""Pages of jobs.

A cursor names the place where the last job of its page stood, so jobs may come, go and move between pages.
"""

from __future__ import annotations

from typing import Final

from ....job.numbers import whole
from ....job.record import JobRecord
from ....job.states import State, state_named
from ....store.commands import Find
from ....store.cursors import PairCursor, cursor_reader, states_left
from ....store.values import Page
from ..book import Book
from ..keys import Bound, Key

STRIDE: Final = 2_000
"""How many jobs one look for a name or tag passes, so that a search for a rare one holds nobody up."""

_read_cursor: Final = cursor_reader(PairCursor)


class Search:
    """One page in the making: `look`, letting others in between, until it answers."""

    def __init__(self, query: Find) -> None:
        self._query = query
        self._limit = whole("limit", query.limit, 1, 2**53)
        for state in query.states:
            state_named(state)
        start = _read_cursor(query)
        self._states = states_left(query, start)
        self._bound: Bound | None = (start.first, start.second) if start else None
        self._found: list[tuple[State, Key, JobRecord]] = []

    def look(self, book: Book) -> Page | None:
        """None: not done yet."""
        passed = 0
        while self._states:
            if passed >= STRIDE and self._is_picky:
                return None
            passed += self._pass(book, self._states[0])
            if len(self._found) > self._limit:
                state, key, _ = self._found[self._limit - 1]
                return Page([job for _, _, job in self._found[: self._limit]], str(PairCursor(state, key[0], key[1])))
        return Page([job for _, _, job in self._found])

    @property
    def _is_picky(self) -> bool:
        return self._query.name is not None or self._query.tag is not None

    def _wants(self, job: JobRecord) -> bool:
        name, tag = self._query.name, self._query.tag
        return (name is None or job.name == name) and (tag is None or tag in job.tags)

    def _pass(self, book: Book, state: State) -> int:
        """Goes through some jobs of a state, and on to the next state after the last."""
        keys = book.shelf(state).keys
        count = STRIDE if self._is_picky else self._limit + 1 - len(self._found)
        ask = keys.back_from if self._query.newest_first else keys.after
        passed = ask(self._bound, count)
        jobs = ((key, book.jobs[key[2]]) for key in passed)
        self._found.extend((state, key, job) for key, job in jobs if self._wants(job))
        if len(passed) < count:
            del self._states[0]
            self._bound = None
        else:
            self._bound = passed[-1][:2]
        return len(passed)
