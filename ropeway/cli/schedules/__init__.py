"""`ropeway schedules`: listing, making and moving schedules."""

from __future__ import annotations

import click

from ..helping import examples
from .adding import add
from .holding import pause, resume
from .listing import list_schedules
from .preview import next_runs
from .removing import remove
from .running import run
from .showing import show


@click.group(
    epilog=examples(
        "ropeway schedules list",
        "ropeway schedules add reports nightly make_report --cron '0 9 * * *'",
        "ropeway schedules next '*/15 9-17 * * mon-fri' --tz Europe/Berlin",
    )
)
def schedules() -> None:
    """List, show, make, pause, resume, run and remove schedules."""


for command in (list_schedules, show, add, pause, resume, run, remove, next_runs):
    schedules.add_command(command)
