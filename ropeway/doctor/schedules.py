"""Checks for reasons why the schedules of a queue make no jobs, or jobs that nobody runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..client.found_schedules import FoundSchedule, schedules_of
from ..client.queue import Queue
from ..client.workers import WorkerInfo
from ..job.instants import Instant
from ..showing import length, plural
from ..store.contract import Store
from ..store.inspection import Finding

_NAMED: Final = 5
"""Most schedules of a kind that are named one by one."""


async def examine_schedules(
    store: Store, name: str, workers: Sequence[WorkerInfo], now: Instant, most: int | None
) -> list[Finding]:
    due = 0
    late: list[FoundSchedule] = []
    damaged: list[FoundSchedule] = []
    unhandled: list[FoundSchedule] = []
    async for each in schedules_of(Queue(name, store=store), most):
        standing = each.standing(now)
        if standing == "damaged":
            damaged.append(each)
        elif standing == "late":
            late.append(each)
        elif standing == "due":
            due += 1
            if workers and not _is_handled(each, workers):
                unhandled.append(each)
    return [
        *_damaged(name, damaged),
        *_late(name, late, workers, now),
        *_unhandled(name, unhandled),
        *_unserved(name, due if not workers and not late else 0),
    ]


def _is_handled(each: FoundSchedule, workers: Sequence[WorkerInfo]) -> bool:
    assert each.schedule is not None, "it can be read"
    job_name = each.schedule.name
    return any(worker.handles(each.queue.name, job_name) for worker in workers)


def _damaged(name: str, damaged: Sequence[FoundSchedule]) -> Iterator[Finding]:
    for each in damaged[:_NAMED]:
        what = f"schedule {each.id} cannot be read, and makes no jobs: {each.damage}"
        yield Finding(f"queue {name}", "problem", what, f"ropeway schedules remove {each.id} --queue {name}")
    yield from _more(name, damaged, "cannot be read")


def _late(name: str, late: Sequence[FoundSchedule], workers: Sequence[WorkerInfo], now: Instant) -> Iterator[Finding]:
    remedy = (
        "see whether its workers are alive and can reach the store"
        if workers
        else "start a worker of this queue: ropeway worker MODULE:ATTR"
    )
    for each in sorted(late, key=lambda each: each.stored.next_at or 0)[:_NAMED]:
        late_by = length((now - (each.stored.next_at or now)) / 1000)
        yield Finding(f"queue {name}", "problem", f"schedule {each.id} is late, by {late_by}", remedy)
    yield from _more(name, late, "late")


def _unhandled(name: str, unhandled: Sequence[FoundSchedule]) -> Iterator[Finding]:
    for each in unhandled[:_NAMED]:
        assert each.schedule is not None, "it can be read"
        what = f"schedule {each.id} makes jobs named {each.schedule.name!r}, which no worker of this queue handles"
        remedy = f"deploy a worker that does, or: ropeway schedules pause {each.id} --queue {name}"
        yield Finding(f"queue {name}", "problem", what, remedy)
    yield from _more(name, unhandled, "not handled")


def _unserved(name: str, due: int) -> Iterator[Finding]:
    if due:
        what = f"{plural(due, 'schedule')} and no worker: nothing makes their jobs"
        yield Finding(f"queue {name}", "warning", what, "start one: ropeway worker MODULE:ATTR")


def _more(name: str, schedules: Sequence[FoundSchedule], kind: str) -> Iterator[Finding]:
    if len(schedules) > _NAMED:
        what = f"{plural(len(schedules) - _NAMED, 'more schedule')}: {kind}"
        yield Finding(f"queue {name}", "problem", what, f"ropeway schedules list --queue {name}")
