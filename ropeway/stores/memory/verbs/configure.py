from __future__ import annotations

from ....job.numbers import whole
from ....store.commands import Configure
from ....store.staging import stages_after
from ....store.values import Settings
from ..queue_data import QueueData
from ..step import Step

_MOST_ACTIVE = 2**53


def configure(step: Step, command: Configure) -> Settings:
    queue = step.queue(command.queue)
    old = queue.settings
    if command.max_active is not None:
        whole("max_active", command.max_active, 0, _MOST_ACTIVE)
    names = {*old.paused_names, *command.pause_names} - {*command.resume_names}
    new = Settings(
        old.paused if command.pause is None else command.pause,
        tuple(sorted(names)),
        old.max_active if command.max_active is None else command.max_active or None,
        stages_after(old.stages, command),
    )
    _announce(queue, old, new)
    may_go_on = (
        (old.paused and not new.paused)
        or bool({*old.paused_names} - names)
        or (old.max_active is not None and (new.max_active is None or new.max_active > old.max_active))
    )
    if may_go_on:
        step.wake(command.queue)
    queue.afterwards(queue.set, new)
    return new


def _announce(queue: QueueData, old: Settings, new: Settings) -> None:
    if old.paused != new.paused:
        queue.notice("paused" if new.paused else "resumed")
    for name in sorted({*new.paused_names} - {*old.paused_names}):
        queue.notice("paused", {"name": name})
    for name in sorted({*old.paused_names} - {*new.paused_names}):
        queue.notice("resumed", {"name": name})
