"""`ropeway schedules next`: trying out an expression."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from ...client.schedule import MOST_UPCOMING, moments
from ...job.durations import Duration
from ...job.instants import instant_of
from ...job.schedules import rule_of
from ..escaping import one_line
from ..helping import examples
from ..options import json_option
from ..spelling import instant
from ..text import as_json as json_text
from .rules import every_option, offset_option, tz_option
from .words import distance


@click.command(
    "next",
    epilog=examples(
        "ropeway schedules next '0 9 * * mon-fri' --tz Europe/Berlin",
        "ropeway schedules next @monthly --count 12",
        "ropeway schedules next --every 90m --after 2030-01-01T00:00Z",
    ),
)
@click.argument("expr", required=False)
@tz_option
@every_option
@offset_option
@click.option("--count", type=click.IntRange(1, MOST_UPCOMING), default=5, show_default=True, help="How many.")
@click.option("--after", type=instant, metavar="INSTANT", help="Begin there instead of now.")
@json_option
def next_runs(
    expr: str | None,
    tz: str | None,
    every: Duration | None,
    offset: Duration | None,
    count: int,
    after: datetime | None,
    as_json: bool,
) -> None:
    """Show when an expression, or --every, would run next.

    Times are in its own time zone. It needs no store.
    """
    if (expr is None) == (every is None):
        raise click.UsageError("give either an expression, as in '0 9 * * *', or --every")
    rule = rule_of(cron=expr, tz=tz, every=every, offset=offset)
    now = datetime.now(UTC)
    upcoming = moments(rule, instant_of(after or now), count)
    if as_json:
        click.echo(json_text({"description": rule.explain(), "next": upcoming}))
        return
    click.echo(one_line(rule.explain()))
    for moment in upcoming:
        how_far = "" if after else f"  {distance(moment, now)}"
        click.echo(f"  {moment:%a %Y-%m-%d %H:%M:%S %Z}{how_far}")
