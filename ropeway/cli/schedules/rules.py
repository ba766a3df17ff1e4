"""The options of a schedule's rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from ...job.schedules import MISSED, OVERLAPS
from ..options import Decorator, duration
from ..spelling import instant
from .completing import complete_zone

tz_option: Final[Decorator[Any]] = click.option(
    "--tz", metavar="ZONE", shell_complete=complete_zone, help="Time zone of the expression; UTC by default."
)
every_option: Final[Decorator[Any]] = click.option(
    "--every", type=duration, metavar="DURATION", help="Instead of an expression, as in 30s, 5m or '1 day'."
)
offset_option: Final[Decorator[Any]] = click.option(
    "--offset", type=duration, metavar="DURATION", help="With --every: how much later than its even slots."
)
_OPTIONS: Final = (
    click.option("--cron", metavar="EXPR", help="Five fields, six with seconds first, or @daily and the like."),
    tz_option,
    every_option,
    offset_option,
    click.option("--start", type=instant, metavar="INSTANT", help="No run before, as in 2030-01-31T09:00+01:00."),
    click.option("--end", type=instant, metavar="INSTANT", help="No run after."),
    click.option("--limit", type=click.IntRange(1), help="The number of runs in all."),
    click.option("--overlap", type=click.Choice(OVERLAPS), help="While an earlier job is not final; allow by default."),
    click.option("--missed", type=click.Choice(MISSED), help="Runs while no worker was there; once by default."),
    click.option("--immediately", is_flag=True, default=None, help="Run once more, at once, when it is created."),
)


def with_rule_options(command: Callable[..., Any]) -> Any:
    decorated: Any = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
