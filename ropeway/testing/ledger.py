"""The states of a queue's jobs derived from its event stream, checked against the table of moves."""

from __future__ import annotations

from collections import Counter, defaultdict

from ..job.events import NOTICES, PUBLISHED, Entry
from ..job.moves import is_legal
from ..job.states import FINAL, State


class Ledger:
    """Reads entries in order, and records every move that the table does not allow."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.is_whole = True
        """True if every entry was read, so a job that is unknown was never added."""
        self.states: dict[str, State] = {}
        self.gone: set[str] = set()
        self.max_active: int | None = None
        self.completions: Counter[str] = Counter()
        self.added: set[str] = set()
        """Every job that was ever added."""
        self.ended: set[tuple[str, str]] = set()
        """Every job that was ever final, with the state."""
        self.started: set[str] = set()
        self.retried: set[str] = set()
        """Jobs that were retried by hand."""
        self.problems: list[str] = []
        self._has_begun = False
        self._trails: defaultdict[str, list[str]] = defaultdict(list)

    def lose_track(self) -> None:
        """Entries were trimmed unread, or the queue was obliterated: any job may now be in any state."""
        self.is_whole = False
        self.states.clear()
        self.gone.clear()

    def read(self, entry: Entry) -> None:
        if not self._has_begun and entry.jobs and entry.what != "add":
            # Nothing can happen to a job before it is added: the first entries were trimmed unread.
            self.lose_track()
        self._has_begun = True
        if entry.what == "deduplicated":
            self._read_discarded(entry)
        if entry.what in (*NOTICES, PUBLISHED):
            return
        for id, _ in entry.jobs:
            self._move(id, entry)
        active = sum(state == "active" for state in self.states.values()) if self.max_active else 0
        if entry.what == "claim" and self.max_active and active > self.max_active:
            self.problems.append(f"{active} jobs were active where {self.max_active} may be")

    def _move(self, id: str, entry: Entry) -> None:
        source = self.states.get(id)
        self._trails[id].append(f"{entry.what} to {entry.to}")
        is_known = source is not None or id in self.gone or self.is_whole
        if is_known and not is_legal(entry.what, source, entry.to):
            self.problems.append(f"{id} was {source or 'not there'}, and then: {', '.join(self._trails[id])}")
        if entry.what == "expire" and id in self.started:
            self.problems.append(f"{id} expired, and had been started")
        self._note(id, entry.what, entry.to)
        if entry.to is None:
            self.states.pop(id, None)
            self.gone.add(id)
        else:
            self.states[id] = entry.to
            self.gone.discard(id)

    def _note(self, id: str, what: str, to: State | None) -> None:
        if what == "add":
            self.added.add(id)
            self.started.discard(id)
            self.retried.discard(id)
        elif what == "claim":
            self.started.add(id)
        elif what == "retry by hand":
            self.retried.add(id)
        elif what == "complete":
            self.completions[id] += 1
        if to in FINAL:
            self.ended.add((id, to))

    def _read_discarded(self, entry: Entry) -> None:
        for _, detail in entry.jobs:
            id = (detail or {}).get("discarded")
            if id in self.states:
                self.problems.append(f"{id} was discarded for its dedupe key, and is {self.states[id]}")
