"""cancel, promote, change, remove, clear_log: operations on single jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from ...job.instants import LAST_INSTANT, Instant
from ...job.states import FINAL, State
from ...store import commands
from ...store.values import MISSING, Answer, JobChange
from . import promoting
from .ending import Ends
from .finishing import Removal, cancellation
from .locating import TABLES, LocatedJob, locate, options_of, reach
from .statements import statements
from .transaction import Detail, Transaction, as_json
from .verbs import writes

_CHANGE: Final = statements("change")
_UPDATE: Final = statements("update")

Fields: TypeAlias = tuple[int | None, int | None, Instant | None]
"""Priority, order and due_at; None keeps what is there."""
_KEPT: Final[Fields] = (None, None, None)


@writes(commands.Cancel)
def cancel(tx: Transaction, queue: str, ids: Sequence[str], reason: str | None) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    busy = row.busy
    answers: list[Answer] = []
    reached: list[tuple[LocatedJob, State]] = []
    ends = Ends(tx, row, now)
    for job in locate(tx, row, ids):
        state = job.state
        if state is None:
            answers.append(MISSING)
        elif state == "cancelled" or state not in FINAL:
            answers.append(Answer("done", state))
            if state != "cancelled":
                reached.append((job, state))
                job.state = "cancelled"
        else:
            answers.append(Answer("refused", state))
    if reached:
        options = options_of(tx, (job.seq for job, _ in reached))
        ended = [cancellation(job, state, options[job.seq], reason) for job, state in reached]
        ends.end("cancel", ended, detail=None if reason is None else {"reason": reason})
        ends.conclude()
        tx.notice_drained(row, busy)
    return answers


@writes(commands.Promote)
def promote(tx: Transaction, queue: str, ids: Sequence[str]) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    answers, reached = reach(locate(tx, row, ids), ("delayed",), "waiting")
    if reached:
        promoting.promote(tx, row, [(job.seq, job.id) for job, _ in reached], now)
    return answers


@writes(commands.Change)
def change(tx: Transaction, queue: str, edits: Sequence[JobChange]) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    answers: list[Answer] = []
    jobs: list[tuple[str, Detail]] = []
    moved: defaultdict[str, dict[int, Fields]] = defaultdict(dict)
    data: dict[int, str] = {}
    for job, edit in zip(locate(tx, row, [edit.id for edit in edits]), edits, strict=True):
        if job.state is None:
            answers.append(MISSING)
        elif not _allows(job.state, edit):
            answers.append(Answer("refused", job.state))
        else:
            answers.append(Answer("done", job.state))
            if changes := _changes(edit, now):
                jobs.append((edit.id, changes))
            there = moved[TABLES[job.state]]
            if (fields := _fields(job, edit, now, there.get(job.seq, _KEPT))) != _KEPT:
                there[job.seq] = fields
            if edit.data is not None:
                data[job.seq] = edit.data
    if jobs:
        _move(tx, moved)
        if data:
            tx.run(_UPDATE["data"], {"changes": as_json(list(data.items()))})
        row.announce("changed", now, jobs=jobs)
        tx.wake("jobs", row)
    return answers


def _move(tx: Transaction, moved: dict[str, dict[int, Fields]]) -> None:
    """Writes new priorities, orders and due instants, by the table that each job is in."""
    for table, there in moved.items():
        if there:
            values = {"edits": as_json([(seq, *fields) for seq, fields in there.items()])}
            tx.run(_CHANGE[table], values)
            tx.run(_CHANGE["jobs"], values)


@writes(commands.Remove)
def remove(tx: Transaction, queue: str, ids: Sequence[str], force: bool) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    busy = row.busy
    answers: list[Answer] = []
    reached: list[tuple[LocatedJob, State]] = []
    for job in locate(tx, row, ids):
        if job.state is None:
            answers.append(MISSING)
        elif job.state == "active" and not force:
            answers.append(Answer("refused", job.state))
        else:
            answers.append(Answer("done", job.state))
            reached.append((job, job.state))
            job.state = None
    ends = Ends(tx, row, now)
    ends.remove([Removal(job.seq, job.id, state, job.has, job.token) for job, state in reached])
    ends.conclude()
    tx.notice_drained(row, busy)
    return answers


@writes(commands.ClearLog)
def clear_log(tx: Transaction, queue: str, id: str, keep: int) -> Answer:
    [job] = locate(tx, tx.queue(queue), [id])
    if job.state is None:
        return MISSING
    gone = job.logged - min(max(0, keep), job.logged)
    tx.run(_UPDATE["trim_log"], {"kept": as_json([(job.seq, gone + 1)])})
    return Answer("done", job.state)


def _allows(state: State, edit: JobChange) -> bool:
    if state in FINAL:
        return False
    if (edit.delay is not None or edit.due_at is not None) and state != "delayed":
        return False
    return state != "active" or (edit.priority is None and edit.lifo is None)


def _due_at(edit: JobChange, now: Instant) -> Instant | None:
    if edit.delay is not None:
        return min(now + edit.delay, LAST_INSTANT)
    return edit.due_at


def _fields(job: LocatedJob, edit: JobChange, now: Instant, before: Fields) -> Fields:
    priority, order, due_at = before
    if edit.priority is not None:
        priority = edit.priority
    if edit.lifo is not None:
        order = -job.seq if edit.lifo else job.seq
    if (changed := _due_at(edit, now)) is not None:
        due_at = changed
    return priority, order, due_at


def _changes(edit: JobChange, now: Instant) -> dict[str, Any]:
    changes = {
        "priority": edit.priority,
        "lifo": edit.lifo,
        "due_at": _due_at(edit, now),
        "data": None if edit.data is None else True,
    }
    return {name: value for name, value in changes.items() if value is not None}
