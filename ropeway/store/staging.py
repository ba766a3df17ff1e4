"""What all stores share of the retention of a queue in stages."""

from __future__ import annotations

from ..job.instants import LAST_INSTANT
from ..job.numbers import whole
from ..job.stages import CALLBACK_BATCH, Stage, Stages, stages_in
from .commands import Configure
from .values import BATCH


def stages_after(old: Stages | None, command: Configure) -> Stages | None:
    """The stages after a `configure`; None if the queue never had any. Jobs that are stale stay so."""
    ages = {"stale_after": command.stale_after, "delete_after": command.delete_after}
    given = {name: whole(name, age, 0, LAST_INSTANT) or None for name, age in ages.items() if age is not None}
    if not given and command.callbacks is None:
        return old
    before = old or Stages()
    after = {"stale_after": before.stale_after, "delete_after": before.delete_after, **given}
    callbacks = before.callbacks
    if command.callbacks is not None:
        callbacks = stages_in({*callbacks, *command.callbacks}) if command.callbacks else ()
    return Stages(after["stale_after"], after["delete_after"], before.stale_until, callbacks)


def stage_batch(stages: Stages, stage: Stage) -> int:
    """How many jobs one `tick` moves to a stage."""
    return CALLBACK_BATCH if stage in stages.callbacks else BATCH
