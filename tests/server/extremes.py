"""One command of each kind with every field set, and values that no field should have."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from ropeway.job.dedupe import DedupeRule
from ropeway.job.extras import Extras, Origin, WebhookRule
from ropeway.job.failure import Failure
from ropeway.job.flows import Child, Parent
from ropeway.job.ids import new_id, new_token
from ropeway.job.marks import Mark, Marking, Notice
from ropeway.job.outcomes import Outcome
from ropeway.job.record import NewJob
from ropeway.job.retention import Retention
from ropeway.store.commands import (
    Add,
    Cancel,
    Change,
    Claim,
    Clean,
    ClearLog,
    Command,
    Configure,
    Count,
    CountWaiting,
    Find,
    Forget,
    Get,
    ListQueues,
    Obliterate,
    Promote,
    Publish,
    ReadChildren,
    ReadClock,
    ReadDedupe,
    ReadEvents,
    ReadHistory,
    ReadLog,
    ReadMetrics,
    ReadRevoked,
    ReadSchedules,
    ReadSettings,
    Recall,
    ReleaseDedupe,
    Remember,
    Remove,
    Renew,
    Retry,
    Settle,
    Tick,
    TrimEvents,
    Update,
    Withdraw,
    WriteSchedules,
)
from ropeway.store.values import JobChange, JobUpdate, Lock, Record, ScheduleWrite, StallRules

EXTREMES: Final[tuple[Any, ...]] = (
    *(-1, 0, 2**31, 2**53, 2**63 - 1, 2**64 - 1, 10**400, True, None, [], [None]),
    *("", "a\x00b", "x" * 70_000, 'x","y', "\u2028", "now", "0-0", "{", "{}", "NaN", r'"\u0000"'),
)
MARKING: Final = Marking((Mark("step:a", "1"),), ("step:b",), (Notice("phase-started", "{}"),))


def commands(id: str, token: str) -> list[Command[Any]]:
    """About the queue `q`, and an active job in it."""
    return [
        Add([_flow()]),
        Claim("q", "w", new_token(), 1, 1_000, ("task",), wait=1),
        Withdraw("q", "w", new_token()),
        Settle("q", [_retry(id, token)], Claim("q", "w", new_token(), 1, 1_000)),
        Settle("q", [Outcome(id, token, "complete", "1", keep=Retention(1, 1))]),
        Settle("q", [Outcome(id, token, "postpone", delay=5, awaits="step:a")]),
        Renew("q", [Lock(id, token)], 1_000),
        Update("q", [JobUpdate(id, token, "1", '{"a":2}', ("line",), 10, True, True, marking=MARKING)]),
        Update("q", [JobUpdate(id, token, children=(Child("q", "c"),), adds=(_job(parents=(Parent("q", id),)),))]),
        Tick("q", StallRules(1, "requeue", False, {"process": "ended"})),
        Cancel("q", [id], "reason"),
        Retry("q", [id], True, MARKING),
        Promote("q", [id]),
        Change("q", [JobChange(id, 1, True, 5, None, "1"), JobChange(id, due_at=99_999_999)]),
        Remove("q", [id]),
        Configure("q", False, ["n"], ["m"], 5, 1_000, 1_000, ["stale"]),
        WriteSchedules("q", [ScheduleWrite("s", "{}", 9_999_999_999, None, (_job(),), ("x",))]),
        ReleaseDedupe("q", "key"),
        ClearLog("q", id, 1),
        Publish("q", "event", "{}", id),
        TrimEvents("q", 5),
        Clean("q", "completed", 0, 10),
        Obliterate("other"),
        Get("q", [id]),
        Find("q", ("waiting", "completed"), "task", 10, None, False, "tag", False),
        Count("q"),
        CountWaiting("q", [0, 1]),
        ReadMetrics("q"),
        ReadHistory("q", id),
        ReadChildren("q", id, ("pending",), None, 10),
        ReadSchedules("q", ["s"]),
        ReadSchedules("q", None, "a", 10),
        ReadDedupe("q", "key"),
        ReadLog("q", id, 0, 10),
        ReadSettings("q"),
        ListQueues(),
        ReadClock(),
        ReadEvents("q", None, False, 10),
        ReadRevoked("q"),
        Remember(Record("worker", "key", "{}"), 0, 1_000),
        Recall("worker", "key"),
        Forget("worker", "key"),
    ]


def variants(command: Any) -> Iterator[Any]:
    """The command, encoded, with each of its values replaced by each of the extremes."""
    for path in _paths(command):
        for value in EXTREMES:
            varied = deepcopy(command)
            *parents, last = path
            place = varied
            for step in parents:
                place = place[step]
            place[last] = value
            yield varied


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        if step != "verb":
            yield (*path, step)
            yield from _paths(item, (*path, step))


def _job(**more: Any) -> NewJob:
    return NewJob("q", new_id(), "task", '{"a":1}', **more)


def _flow() -> list[NewJob]:
    extras = Extras(
        start_within=1_000,
        dead_letter="dead",
        dedupe=DedupeRule("key", "until-final"),
        schedule="s",
        origin=Origin("q", "x", "reason", 1, 5),
        webhook=WebhookRule("https://hooks.example/", ("failed",)),
    )
    child = _job(due_at=99_999_999)
    parent = _job(priority=1, delay=5, tags=("tag",), children=(Child("q", child.id),), extras=extras)
    return [parent, _job(parents=(Parent("q", parent.id),)), child]


def _retry(id: str, token: str) -> Outcome:
    failure = Failure("reason", "trace")
    return Outcome(id, token, "retry", "1", failure, 5, Retention(1, 1), False, 10, (_job(),), marking=MARKING)
