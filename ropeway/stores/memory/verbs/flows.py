"""Parents and children: what the end of a job does to those that wait for it."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from ....job.codec import JsonText
from ....job.flows import EFFECTS, ENDS, OWED, ChildEnd, Parent, reason_for_parents
from ....job.instants import LAST_INSTANT
from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.commands import ReadChildren
from ....store.values import Children
from ..families import Family, Key
from ..step import Step


class News(NamedTuple):
    """The end of a child, for one of its parents."""

    parent: Parent
    queue: str
    id: str
    ended: ChildEnd
    result: JsonText | None
    reason: str


def news_of(job: JobRecord, move: str) -> list[News]:
    """What to tell the parents of a job that has just ended by a move."""
    ended = ENDS[move]
    reason = reason_for_parents(job.queue, job.id, move, job.reason) if ended in ("failed", "cancelled") else ""
    return [News(parent, job.queue, job.id, ended, job.result, reason) for parent in job.parents]


def children(step: Step, command: ReadChildren) -> Children | None:
    queue = step.shared.queue(command.queue)
    if command.id not in queue.jobs:
        return None
    family = queue.families.get(command.id) or Family({})
    return family.page(command.states, command.after, command.limit)


def release(step: Step, parent: JobRecord, family: Family) -> None:
    """Lets a parent go on: it waits in line, or for its own delay."""
    queue, now = step.queue(parent.queue), step.now
    due_at = min(now + family.delay, LAST_INSTANT) if family.delay else family.due_at
    is_delayed = due_at is not None and due_at > now
    queue.change(family, is_released=True, delay=0, due_at=None)
    queue.put(replace(parent, state="delayed" if is_delayed else "waiting", due_at=due_at if is_delayed else None))
    detail = {"due_at": due_at} if is_delayed else None
    queue.entry("release", "delayed" if is_delayed else "waiting").append((parent.id, detail))
    step.wake(parent.queue)


def note_end(step: Step, news: News) -> tuple[JobRecord, Family] | None:
    """Records the end of a child. Returns the parent, if it waits and something becomes of it now."""
    queue = step.queue(news.parent.queue)
    parent, family = queue.jobs.get(news.parent.id), queue.families.get(news.parent.id)
    key = news.queue, news.id
    link = family.links.get(key) if family else None
    if parent is None or family is None or link is None or link.state == "completed":
        return None
    effect = EFFECTS[news.ended][link.policy]
    was_awaited = link.is_awaited
    if effect == "forget":
        if not was_awaited:
            return None
        queue.forget_child(family, key)
        queue.put(replace(parent, children=len(family.links)))
    elif effect == "done" or link.state == "pending":
        reason = None if news.ended == "completed" else news.reason
        queue.change(link, state=news.ended, result=news.result, reason=reason)
    else:
        return None
    if was_awaited and effect != "hold":
        queue.change(family, left=family.left - 1)
    if effect in OWED and (family.owed is None or OWED.index(effect) > OWED.index(family.owed)):
        queue.change(family, owed=effect, owed_reason=news.reason)
    return (queue.jobs[parent.id], family) if parent.state == "waiting-children" else None


def orphan(step: Step, parent: JobRecord) -> list[JobRecord]:
    """Takes a parent from its unfinished children; returns those that have no other."""
    family = step.queue(parent.queue).families.get(parent.id)
    alone: list[JobRecord] = []
    for queue, id in family.links if family else ():
        child = _child_of(step, parent, (queue, id))
        if child is None or child.state in FINAL:
            continue
        parents = tuple(one for one in child.parents if one != Parent(parent.queue, parent.id))
        child = replace(child, parents=parents)
        step.queue(queue).put(child)
        if not parents:
            alone.append(child)
    return alone


def failed_children(step: Step, parent: JobRecord, family: Family) -> list[JobRecord]:
    """The children by which a parent failed, as far as they are still there; from now on it waits for them again."""
    failed: list[JobRecord] = []
    for (name, id), link in family.links.items():
        child = _child_of(step, parent, (name, id))
        if link.policy != "fail" or link.state not in ("failed", "cancelled") or child is None:
            continue
        if child.state == "completed":
            continue
        step.queue(name).change(link, state="pending", reason=None)
        step.queue(name).change(family, left=family.left + 1)
        if child.state in FINAL:
            failed.append(child)
    return failed


def _child_of(step: Step, parent: JobRecord, key: Key) -> JobRecord | None:
    """The child of a link. Another job may have its id since it was removed."""
    queue, id = key
    child = step.queue(queue).jobs.get(id)
    return child if child is not None and Parent(parent.queue, parent.id) in child.parents else None
