"""`ropeway jobs`: listing, showing and moving jobs."""

from __future__ import annotations

import click

from ..helping import examples
from .changing import change
from .job_log import clear_logs, logs
from .listing import list_jobs
from .moving import cancel, promote, remove, retry
from .redriving import redrive
from .showing import show
from .signalling import signal


@click.group(
    epilog=examples(
        "ropeway jobs list --state failed",
        "ropeway jobs show 4e5f6a7b    # the end of an id, as `ropeway top` shows it",
        "ropeway jobs retry --queue emails --state failed",
    )
)
def jobs() -> None:
    """List, show, retry, signal, cancel, promote, change, redrive and remove jobs."""


for command in (list_jobs, show, logs, clear_logs, retry, signal, cancel, promote, change, redrive, remove):
    jobs.add_command(command)
