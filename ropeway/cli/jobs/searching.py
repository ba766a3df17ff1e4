"""Searching for jobs by the last characters of their ids.

Stores keep ids in the order of their first letters, so the end of one cannot be looked up: the newest jobs of each
state are read instead, up to a limit. What people type they have just seen, and it is among those.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

import click

from ...client.queue import Queue
from ...job.instants import moment_of
from ...job.record import JobRecord
from ...job.states import STATES, State
from ...showing import plural
from ...store.commands import Find
from ..escaping import one_line
from ..ids import is_end_of
from ..text import age

SEARCHED: Final = 20_000
"""Most jobs examined per state and queue: twice the number of completed jobs kept by default."""
_PAGE: Final = 500
"""Jobs per page; they are read with their data, which may be large."""
_LISTED: Final = 10


class Match(NamedTuple):
    queue: Queue
    record: JobRecord


class Search:
    def __init__(self, ends: Sequence[str]) -> None:
        self.found: dict[str, list[Match]] = {end: [] for end in ends}
        self.is_partial = False
        """True if not all jobs were examined."""

    @classmethod
    async def through(cls, queues: Sequence[Queue], ends: Sequence[str]) -> Search:
        """Searches for ids with these ends; reads nothing if there are none."""
        search = cls(ends)
        for queue in queues if ends else ():
            for state in STATES:
                async for record in search._newest(queue, state):
                    search._compare(Match(queue, record))
        return search

    def show(self, end: str) -> None:
        """Prints the jobs whose ids have this end."""
        matches = self.found[end]
        for queue, record in matches[:_LISTED]:
            facts = (record.id, queue.name, one_line(record.name), record.state, age(moment_of(record.created_at)))
            click.echo("  ".join(facts), err=True)
        if len(matches) > _LISTED:
            click.echo(f"… and {plural(len(matches) - _LISTED, 'other')}", err=True)

    async def _newest(self, queue: Queue, state: State) -> AsyncIterator[JobRecord]:
        after = None
        for _ in range(SEARCHED // _PAGE):
            page = await queue.store.find(Find(queue.name, (state,), None, _PAGE, after, newest_first=True))
            for record in page.jobs:
                yield record
            after = page.next
            if after is None:
                return
        self.is_partial = True

    def _compare(self, match: Match) -> None:
        for end, matches in self.found.items():
            # A job that changed its state during the search is found again there.
            if is_end_of(end, match.record.id) and all(known.record.id != match.record.id for known in matches):
                matches.append(match)
