"""`ropeway schedules show`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import click

from ...client.found_schedules import FoundSchedule, options_of
from ...client.schedule import Schedule, Tick
from ...job.instants import Instant, moment_of
from ...job.schedules import Rule
from ...showing import length, plural
from ...store.contract import Store
from ..escaping import one_line
from ..helping import examples
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..text import as_json as json_text
from ..text import clock_time, instant_time, shown
from .completing import complete_schedule
from .locating import locate
from .words import distance, next_run

UPCOMING: Final = 5
_TICKS: Final = 10
_LATE: Final = 1.0
"""Seconds from which the delay of a tick is worth a word."""


@click.command(
    epilog=examples(
        "ropeway schedules show nightly",
        "ropeway schedules show nightly --queue reports --json | jq .upcoming",
    )
)
@click.argument("id", shell_complete=complete_schedule)
@queue_option
@url_option
@json_option
@on_store()
async def show(store: Store, id: str, queue: str | None, as_json: bool) -> None:
    """Show a schedule with its next and last runs, in local time.

    Of a paused one, the next runs are those it would have.
    """
    located = await locate(store, id, queue)
    now = await store.clock()
    moment = moment_of(now)
    upcoming = _upcoming(located, moment)
    if as_json:
        click.echo(json_text({"schedule": located.document(now), "upcoming": upcoming}))
        return
    _show_facts(located, now, moment)
    if located.schedule is not None:
        _show_upcoming(upcoming, moment)
        _show_history(located.schedule.history)


def _upcoming(located: FoundSchedule, now: datetime) -> list[datetime]:
    """Also of one that is paused: when it would run."""
    if located.schedule is None:
        return []
    if located.schedule.next_at is None:
        return located.schedule.upcoming(UPCOMING, after=now) if located.schedule.paused else []
    return located.schedule.upcoming(UPCOMING)


def _show_facts(located: FoundSchedule, now: Instant, moment: datetime) -> None:
    schedule = located.schedule
    facts: dict[str, Any] = {"queue": located.queue.name, "next run": next_run(located, located.standing(now), moment)}
    if schedule is None:
        facts |= {"next run": "damaged: it fires no more", "unreadable": one_line(located.damage)}
        click.echo(click.style(located.id, bold=True))
    else:
        facts |= {
            "when": one_line(schedule.description),
            **_rule(schedule.rule),
            "ticks": _ticks(schedule),
            "overlap": schedule.overlap,
            "missed": schedule.missed,
            "made": clock_time(schedule.created_at),
            "data": shown(schedule.data),
            "options": _options(options_of(located.template)),
        }
        click.echo(f"{click.style(one_line(schedule.name), bold=True)}  {located.id}")
    for name, value in facts.items():
        if value:
            click.echo(f"  {name:<13} {value}")


def _rule(rule: Rule) -> dict[str, str]:
    ends = {"start": rule.start, "end": rule.end}
    return {
        "cron": "" if rule.cron is None else f"{rule.cron}  ({rule.tz})",
        **{name: "" if at is None else instant_time(at).removesuffix(".000") for name, at in ends.items()},
    }


def _ticks(schedule: Schedule) -> str:
    limit = schedule.rule.limit
    return f"{schedule.fired:,}" if limit is None else f"{schedule.fired:,} of {limit:,}"


def _options(options: dict[str, Any]) -> str:
    return "  ".join(f"{name}={shown(value)}" for name, value in options.items())


def _show_upcoming(upcoming: list[datetime], now: datetime) -> None:
    if not upcoming:
        return
    click.echo("\nNext runs")
    for moment in upcoming:
        click.echo(f"  {clock_time(moment)}  {distance(moment, now)}")


def _show_history(history: tuple[Tick, ...]) -> None:
    if not history:
        return
    click.echo("\nLast runs")
    if len(history) > _TICKS:
        click.echo(f"  … {plural(len(history) - _TICKS, 'earlier one')}, in --json")
    for tick in history[-_TICKS:]:
        click.echo(f"  {clock_time(tick.at)}  {_what(tick)}")


def _what(tick: Tick) -> str:
    if tick.skipped is not None:
        return f"{click.style('skipped', fg='yellow')}: {one_line(tick.skipped)}"
    late = (tick.fired_at - tick.at).total_seconds()
    return f"{tick.job}" + (f"  {length(late)} late" if late >= _LATE else "")
