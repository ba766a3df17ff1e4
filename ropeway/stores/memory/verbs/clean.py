"""Removing many jobs at once: clean and obliterate."""

from __future__ import annotations

from typing import TypeAlias

from msgspec.structs import replace

from ....errors import InvalidOption
from ....job.states import FINAL, STATES, state_named
from ....store.commands import Clean, Obliterate
from ....store.values import BATCH, Cleaned
from ..keys import Key, MergedKeys, SortedKeys
from ..queue_data import QueueData
from ..step import Step
from .ending import conclude, drop, revoke

AnyKeys: TypeAlias = SortedKeys | MergedKeys


def clean(step: Step, command: Clean) -> Cleaned:
    state = state_named(command.state)
    if state == "active":
        raise InvalidOption("state", "cannot be 'active': cancel or remove running jobs instead")
    queue = step.queue(command.queue)
    index = queue.index(state)
    keys = index.keys if state in FINAL else index.oldest()
    batch = max(0, min(command.limit, BATCH))
    before = (step.now - command.older_than + 1,)
    old = keys.first(batch + 1, before=before) if state in FINAL else _without_scheduled(queue, keys, before, batch + 1)
    ids = [id for _, _, id in old[:batch]]
    for id in ids:
        drop(step, queue.jobs[id])
    conclude(step)
    if ids:
        queue.notice("cleaned", {"count": len(ids), "state": state})
    return Cleaned(ids, more=len(old) > batch)


def _without_scheduled(queue: QueueData, keys: AnyKeys, before: tuple[int], most: int) -> list[Key]:
    """The first jobs before an instant, without those of schedules."""
    asked = most
    while True:
        first = keys.first(asked, before=before)
        found = [key for key in first if (extras := queue.jobs[key[2]].extras) is None or extras.schedule is None]
        if len(found) >= most or len(first) < asked:
            return found[:most]
        asked *= 2


def obliterate(step: Step, command: Obliterate) -> Cleaned:
    queue = step.queue(command.queue)
    active = len(queue.index("active"))
    is_refused = active > 0 and not command.force
    ids: list[str] = []
    if not is_refused:
        for state in STATES:
            ids += [id for _, _, id in queue.index(state).keys.first(BATCH - len(ids))]
        for id in ids:
            revoke(step, queue.jobs[id], "removed")
            drop(step, queue.jobs[id], quietly=True)
        conclude(step)
    queue.keep_quiet()
    if is_refused or queue.jobs:
        queue.afterwards(queue.set, replace(queue.settings, paused=True))
    else:
        queue.afterwards(step.shared.forget, queue)
    return Cleaned(ids, more=bool(queue.jobs) and not is_refused, active=active if is_refused else 0)
