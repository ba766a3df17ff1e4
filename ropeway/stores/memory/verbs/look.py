"""Read-only commands."""

from __future__ import annotations

from ....job.instants import Instant
from ....job.record import JobRecord
from ....job.states import STATES
from ....store import commands
from ....store.values import Counts, Entries, History, LogPage, Metric, Record, Revoked, Settings
from ..step import Step


def get(step: Step, command: commands.Get) -> list[JobRecord | None]:
    return [*map(step.shared.queue(command.queue).jobs.get, command.ids)]


def count(step: Step, command: commands.Count) -> Counts:
    queue = step.shared.queue(command.queue)
    return {state: len(queue.index(state)) for state in STATES}


def count_waiting(step: Step, command: commands.CountWaiting) -> list[int]:
    return step.shared.queue(command.queue).index("waiting").counted.counts(command.priorities)


def metrics(step: Step, command: commands.ReadMetrics) -> list[Metric]:
    return step.shared.queue(command.queue).metrics.since(command.since)


def history(step: Step, command: commands.ReadHistory) -> History | None:
    queue = step.shared.queue(command.queue)
    return queue.histories.read(command.id) if command.id in queue.jobs else None


def log(step: Step, command: commands.ReadLog) -> LogPage | None:
    queue = step.shared.queue(command.queue)
    if command.id not in queue.jobs:
        return None
    return queue.histories.page(command.id, command.after, command.limit, newest_first=command.newest_first)


def settings(step: Step, command: commands.ReadSettings) -> Settings:
    return step.shared.queue(command.queue).settings


def queues(step: Step, _: commands.ListQueues) -> list[str]:
    return sorted(name for name, queue in step.shared.queues.items() if queue.is_listed)


def clock(step: Step, _: commands.ReadClock) -> Instant:
    return step.now


def events(step: Step, command: commands.ReadEvents) -> Entries:
    stream = step.shared.queue(command.queue).stream
    if command.newest_first:
        return stream.read_back(command.after, limit=command.limit)
    return stream.read(command.after, inclusive=command.inclusive, limit=command.limit)


def revoked(step: Step, command: commands.ReadRevoked) -> Revoked:
    return step.shared.revoked.read(command.queue, command.after)


def recall(step: Step, command: commands.Recall) -> list[Record]:
    return step.shared.records.recall(command.kind, command.key, step.now)
