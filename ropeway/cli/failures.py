"""Converts errors to one helpful line and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable

import click

from ..errors import (
    InvalidInput,
    JobNotFound,
    ResultTimeout,
    RopewayError,
    ScheduleNotFound,
    StoreError,
    WorkerNotFound,
)
from ..showing import LONGEST_MESSAGE, shortened
from .escaping import one_line
from .exit_codes import ExitCode
from .sink import tell


class ClosedPipe(Exception):
    """A `BrokenPipeError` under another name, because click would give it another exit code."""


def guarded(command: Callable[[], object], wants_traceback: Callable[[], bool]) -> int:
    """Runs a command and returns its exit code: of its error, or the int that it returned."""
    try:
        code = command()
        # Flushed now, and not when the interpreter ends, to notice a closed pipe.
        sys.stdout.flush()
        return code if isinstance(code, int) else ExitCode.OK
    except (BrokenPipeError, ClosedPipe):
        _drop_output()
        return ExitCode.CLOSED_PIPE
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as nothing:
        nothing.show()
        return ExitCode.USAGE
    except Exception as error:  # noqa: BLE001 - a user is never shown a traceback of ours unasked
        if wants_traceback():
            tell(traceback.format_exc().rstrip())
        with contextlib.suppress(BrokenPipeError):
            tell(f"Error: {shortened(one_line(message_of(error)), LONGEST_MESSAGE)}")
        return exit_code_of(error)


def exit_code_of(error: Exception) -> int:
    match error:
        case click.ClickException():
            return error.exit_code
        case InvalidInput():
            return ExitCode.USAGE
        case JobNotFound() | ScheduleNotFound() | WorkerNotFound():
            return ExitCode.NOT_FOUND
        case StoreError():
            return ExitCode.STORE
        case ResultTimeout():
            return ExitCode.TIMEOUT
    return ExitCode.FAILED


def message_of(error: Exception) -> str:
    match error:
        case click.MissingParameter(ctx=click.Context() as context):
            # click lists choices on separate lines.
            return f"{' '.join(error.format_message().split())} (see '{context.command_path} --help')"
        case click.UsageError(ctx=click.Context() as context):
            return f"{error.format_message().rstrip('.')} (see '{context.command_path} --help')"
        case click.ClickException():
            return error.format_message()
        case RopewayError():
            return " ".join([str(error), *getattr(error, "__notes__", [])])
        case OSError():
            return str(error)
    return f"{type(error).__name__}: {error} (a fault in Ropeway; ROPEWAY_DEBUG=1 shows where)"


def _drop_output() -> None:
    """Discards buffered output that has no reader: the interpreter would print an error at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
