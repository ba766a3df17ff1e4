"""Reading: what leaves everything as it is."""

from __future__ import annotations

from ....job.instants import Instant
from ....job.record import JobRecord
from ....job.states import STATES
from ....store import commands
from ....store.values import Counts, Entries, History, LogPage, Metric, Record, Revoked, Settings
from ..step import Step


def get(step: Step, command: commands.Get) -> list[JobRecord | None]:
    return [*map(step.place.book(command.queue).jobs.get, command.ids)]


def count(step: Step, command: commands.Count) -> Counts:
    book = step.place.book(command.queue)
    return {state: len(book.shelf(state)) for state in STATES}


def count_waiting(step: Step, command: commands.CountWaiting) -> list[int]:
    return step.place.book(command.queue).shelf("waiting").counted.counts(command.priorities)


def metrics(step: Step, command: commands.ReadMetrics) -> list[Metric]:
    return step.place.book(command.queue).metrics.since(command.since)


def history(step: Step, command: commands.ReadHistory) -> History | None:
    book = step.place.book(command.queue)
    return book.pasts.read(command.id) if command.id in book.jobs else None


def log(step: Step, command: commands.ReadLog) -> LogPage | None:
    book = step.place.book(command.queue)
    if command.id not in book.jobs:
        return None
    return book.pasts.page(command.id, command.after, command.limit, newest_first=command.newest_first)


def settings(step: Step, command: commands.ReadSettings) -> Settings:
    return step.place.book(command.queue).settings


def queues(step: Step, _: commands.ListQueues) -> list[str]:
    return sorted(name for name, book in step.place.books.items() if book.is_listed)


def clock(step: Step, _: commands.ReadClock) -> Instant:
    return step.now


def events(step: Step, command: commands.ReadEvents) -> Entries:
    stream = step.place.book(command.queue).stream
    return stream.read(command.after, inclusive=command.inclusive, limit=command.limit)


def revoked(step: Step, command: commands.ReadRevoked) -> Revoked:
    return step.place.revoked.read(command.queue, command.after)


def recall(step: Step, command: commands.Recall) -> list[Record]:
    return step.place.records.recall(command.kind, command.key, step.now)
