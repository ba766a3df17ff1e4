"""The exit codes that scripts can rely on."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import click

from ..worker.exit_codes import BLOCKED_LOOP


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    STORE = 4
    TIMEOUT = 5
    APP = 6
    BLOCKED_LOOP = BLOCKED_LOOP
    DRAINED = 8
    INTERRUPTED = 130
    CLOSED_PIPE = 141


MEANINGS: Final[dict[ExitCode, str]] = {
    ExitCode.OK: "it is done",
    ExitCode.FAILED: "what was asked for failed: a job, a check, a worker",
    ExitCode.USAGE: "the command was wrong: an option, a value, a module path",
    ExitCode.NOT_FOUND: "there is no such job, queue, schedule or worker",
    ExitCode.STORE: "the store cannot be reached or used",
    ExitCode.TIMEOUT: "the job did not end in the time given to wait for it",
    ExitCode.APP: "the app's own code raised while it was loaded",
    ExitCode.BLOCKED_LOOP: "a worker's event loop was blocked at its end; its jobs were handed back",
    ExitCode.DRAINED: "a process of `worker --processes` was drained; its parent ends with 0",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.CLOSED_PIPE: "the reader of the output went away",
}


class NotFound(click.ClickException):
    exit_code = ExitCode.NOT_FOUND
