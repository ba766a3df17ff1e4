"""What is written beside jobs: events of the application, and records."""

from __future__ import annotations

from ....job.codec import decode
from ....job.events import PUBLISHED
from ....store.commands import Forget, Publish, Remember, TrimEvents
from ....store.values import Remembered
from ..step import Step


def publish(step: Step, command: Publish) -> None:
    step.book(command.queue).notice(PUBLISHED, {"name": command.name, "data": decode(command.data)})


def trim_events(step: Step, command: TrimEvents) -> None:
    step.place.book(command.queue).stream.trim_to(command.keep)


def remember(step: Step, command: Remember) -> Remembered:
    return step.place.records.remember(command.record, command.expect, command.lasting, step.now)


def forget(step: Step, command: Forget) -> bool:
    return step.place.records.forget(command.kind, command.key, step.now)
