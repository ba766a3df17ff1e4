"""Pages of jobs.

A cursor names the place where the last job of its page stood, so jobs may come, go and move between pages.
"""

from __future__ import annotations

import re
from typing import Final

from ....errors import InvalidOption
from ....job.numbers import whole
from ....job.record import JobRecord
from ....job.states import State, state_named
from ....store.values import Page, Query
from ..book import Book
from ..keys import Bound, Key

STRIDE: Final = 2_000
"""How many jobs one look for a name passes, so that a search for a rare one holds nobody up."""

_CURSOR: Final = re.compile(r"([a-z-]+):(-?[0-9]{1,16}):(-?[0-9]{1,16})", re.ASCII)


class Search:
    """One page in the making: `look`, letting others in between, until it answers."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._limit = whole("limit", query.limit, 1, 2**53)
        states: dict[State, None] = {state_named(state): None for state in query.states}
        self._states: list[State] = [*reversed(states)] if query.newest_first else [*states]
        self._bound: Bound | None = None
        self._found: list[tuple[State, Key, JobRecord]] = []
        if query.after is not None:
            self._resume(query.after)

    def look(self, book: Book) -> Page | None:
        """None: not done yet."""
        passed = 0
        while self._states:
            if passed >= STRIDE and self._query.name is not None:
                return None
            passed += self._pass(book, self._states[0])
            if len(self._found) > self._limit:
                state, key, _ = self._found[self._limit - 1]
                return Page([job for _, _, job in self._found[: self._limit]], f"{state}:{key[0]}:{key[1]}")
        return Page([job for _, _, job in self._found])

    def _pass(self, book: Book, state: State) -> int:
        """Goes through some jobs of a state, and on to the next state after the last."""
        keys, name = book.shelf(state).keys, self._query.name
        count = self._limit + 1 - len(self._found) if name is None else STRIDE
        ask = keys.back_from if self._query.newest_first else keys.after
        passed = ask(self._bound, count)
        jobs = ((key, book.jobs[key[2]]) for key in passed)
        self._found.extend((state, key, job) for key, job in jobs if name is None or job.name == name)
        if len(passed) < count:
            del self._states[0]
            self._bound = None
        else:
            self._bound = passed[-1][:2]
        return len(passed)

    def _resume(self, cursor: str) -> None:
        read = _CURSOR.fullmatch(cursor)
        if read is None or read[1] not in self._states:
            raise InvalidOption("after", f"{cursor!r:.80} is not a cursor of this listing")
        while self._states[0] != read[1]:
            del self._states[0]
        self._bound = (int(read[2]), int(read[3]))
