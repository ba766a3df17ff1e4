"""Commands that write no jobs: published events and versioned records."""

from __future__ import annotations

from ....job.codec import decode
from ....job.events import PUBLISHED
from ....store.commands import Forget, Publish, Remember, TrimEvents
from ....store.values import Remembered
from ..step import Step


def publish(step: Step, command: Publish) -> None:
    about = {} if command.job is None else {"job": command.job}
    step.queue(command.queue).notice(PUBLISHED, {"name": command.name, "data": decode(command.data), **about})


def trim_events(step: Step, command: TrimEvents) -> None:
    step.shared.queue(command.queue).stream.trim_to(command.keep)


def remember(step: Step, command: Remember) -> Remembered:
    return step.shared.records.remember(command.record, command.expect, command.lasting, step.now)


def forget(step: Step, command: Forget) -> bool:
    return step.shared.records.forget(command.kind, command.key, step.now)
