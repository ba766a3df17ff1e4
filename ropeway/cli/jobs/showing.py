"""`ropeway jobs show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ...client.queue import Queue
from ...client.snapshot import Snapshot, is_due_when_woken
from ...client.timeline import TimelineEntry, TimelineLine, timeline_lines, timeline_of
from ...errors import JobNotFound
from ...job.extras import Origin
from ...job.flows import ChildState
from ...job.instants import instant_of, moment_of
from ...showing import plural
from ...store.contract import Store
from ...store.values import History, LogLine
from ..escaping import one_line, printable
from ..event_details import event_details
from ..helping import examples
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..tables import STATE_COLOURS
from ..text import as_json as json_text
from ..text import clock_time, instant_time, iso, shown
from .job_log import log_document, log_line
from .locating import locate_one
from .phase_lines import attempt_lines, phase_lines, step_lines

_LOG_LINES = 20
_PARENTS = 5


@click.command(
    epilog=examples(
        "ropeway jobs show 4e5f6a7b    # the end of an id, as `ropeway top` shows it",
        "ropeway jobs show welcome-42 --queue emails --json | jq .job.state",
    )
)
@click.argument("id")
@queue_option
@url_option
@json_option
@on_store()
async def show(store: Store, id: str, queue: str | None, as_json: bool) -> None:
    """Show all that is known of a job: its phases, steps, timeline, log lines and the trace of its last failure.

    `ropeway flows show` shows its children one by one.
    """
    found, id = await locate_one(store, id, queue)
    job = await found.get(id)
    if job is None:
        raise JobNotFound(found.name, id)
    snapshot = job.snapshot
    history = await found.history(id)
    timeline = await timeline_of(found, snapshot, history)
    counts = await job.children_counts() if snapshot.children else None
    delivery = await found.delivery(id) if snapshot.webhook is not None and snapshot.origin is None else None
    delivered = None if delivery is None else delivery.snapshot
    stale = await _is_stale(found, snapshot)
    if as_json:
        document = {
            "job": snapshot,
            "stale": stale,
            "children": counts,
            "delivery": delivered,
            "timeline": _documents(timeline),
            **_history_document(history),
        }
        click.echo(json_text(document))
        return
    _show_facts(snapshot, counts or {}, delivered, stale=stale)
    now = moment_of(await store.clock())
    for line in (*phase_lines(snapshot, now), *step_lines(snapshot, now), *attempt_lines(history)):
        click.echo(line)
    _show_timeline(timeline_lines(timeline, snapshot))
    _show_log(history.log[-_LOG_LINES:], history)
    if history.failures and history.failures[-1].trace:
        last = history.failures[-1]
        click.echo(f"\nTrace of attempt {last.attempt}\n{printable(last.trace).rstrip()}")


async def _is_stale(queue: Queue, job: Snapshot) -> bool:
    """True if the queue's retention has marked it as stale."""
    stages = (await queue.settings()).stages if job.finished_at is not None else None
    return stages is not None and job.finished_at is not None and instant_of(job.finished_at) <= stages.stale_until


def _show_facts(job: Snapshot, children: Mapping[ChildState, int], delivery: Snapshot | None, *, stale: bool) -> None:
    state = click.style(job.state, fg=STATE_COLOURS.get(job.state)) + (" · stale" if stale else "")
    facts = {
        "queue": job.queue,
        "state": f"{state}{f' · {one_line(job.reason)}' if job.reason else ''}",
        "priority": job.priority or "",
        "tags": one_line(", ".join(job.tags)),
        "attempts": f"{job.attempts_made} of {job.attempts} failed, {job.attempts_started} started",
        "stalled": job.stalled_count or "",
        "added": clock_time(job.created_at),
        "due": "when it is woken" if is_due_when_woken(job) else clock_time(job.due_at),
        "waits for": "" if job.waits_for is None else f"signal {shown(job.waits_for.signal)}",
        "start by": clock_time(job.start_by) if job.started_at is None else "",
        "started": clock_time(job.started_at),
        "finished": clock_time(job.finished_at),
        "kept until": clock_time(job.expires_at),
        "worker": one_line(job.worker or ""),
        "locked until": clock_time(job.lock_until),
        "parents": _parents(job),
        "children": ", ".join(f"{count:,} {state}" for state, count in children.items() if count),
        "schedule": job.schedule or "",
        "dedupe key": one_line(job.dedupe or ""),
        "dead letter": job.dead_letter or "",
        "origin": _origin(job.origin),
        "webhook": one_line(job.webhook or ""),
        "delivery": "" if delivery is None else _delivery(delivery),
        "data": shown(job.data),
        "progress": "" if job.progress is None else shown(job.progress),
        "result": shown(job.result) if job.state == "completed" else "",
        "unreadable": ", ".join(job.corrupt),
    }
    click.echo(f"{click.style(one_line(job.name), bold=True)}  {job.id}")
    for name, value in facts.items():
        if value:
            click.echo(f"  {name:<13} {value}")


def _origin(origin: Origin | None) -> str:
    """Of a letter: the job whose end added it."""
    if origin is None:
        return ""
    ended = f"{origin.event} at {instant_time(origin.at)}"
    if origin.event == "failed":
        ended += f" after {plural(origin.attempts, 'attempt')}"
    return f"{origin.queue}/{origin.id} · {ended}{f': {one_line(origin.reason)}' if origin.reason else ''}"


def _delivery(delivery: Snapshot) -> str:
    why = f" · {one_line(delivery.reason)}" if delivery.reason and delivery.state != "completed" else ""
    return f"{delivery.state}{why} ({delivery.id})"


def _parents(job: Snapshot) -> str:
    first = ", ".join(
        parent.id if parent.queue == job.queue else f"{parent.queue}/{parent.id}" for parent in job.parents[:_PARENTS]
    )
    return f"{first} and {len(job.parents) - _PARENTS:,} more" if len(job.parents) > _PARENTS else first


def _show_timeline(lines: list[TimelineLine]) -> None:
    width = max(len(", ".join(line.names)) for line in lines)
    click.echo("\nTimeline")
    for at, names, data in lines:
        styled = ", ".join(click.style(name, fg=STATE_COLOURS.get(name)) for name in names)
        padding = " " * (width - len(", ".join(names)))
        click.echo(f"  {instant_time(at)}  {styled}{padding}  {event_details(names[0], data)}".rstrip())


def _show_log(lines: list[LogLine], history: History) -> None:
    earlier = len(history.log) - len(lines) + history.dropped_log_lines
    if not lines and not earlier:
        return
    click.echo("\nLog")
    if earlier:
        click.echo(f"  … {plural(earlier, 'earlier line')}")
    for line in lines:
        click.echo(f"  {log_line(line)}")


def _documents(timeline: list[TimelineEntry]) -> list[dict[str, Any]]:
    return [{"at": iso(entry.at), "name": entry.name, "data": entry.data} for entry in timeline]


def _history_document(history: History) -> dict[str, Any]:
    failures = [
        {
            "attempt": each.attempt,
            "started_at": None if each.started_at is None else iso(each.started_at),
            "at": iso(each.at),
            "worker": each.worker,
            "reason": each.reason,
            "trace": each.trace,
        }
        for each in history.failures
    ]
    return {"failures": failures, **log_document(history.log), "dropped_log_lines": history.dropped_log_lines}
