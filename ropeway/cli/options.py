"""Options and arguments shared by several commands."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import click

from ..errors import InvalidDuration, InvalidInput
from ..job.durations import Duration, milliseconds
from ..job.states import STATES, State, state_named
from ..showing import shown
from .completing import complete_queue, complete_state

F = TypeVar("F", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[F], F]


def duration(value: str) -> Duration:
    """`90` for seconds, or as anywhere else in Ropeway: `5m`, `"1 hour"`, `PT5M`."""
    given: Duration = float(value) if _is_number(value) else value
    try:
        milliseconds(given)
    except InvalidDuration as wrong:
        problem = "is not a duration: use seconds, or text such as 5m, 1h30m or PT5M"
        # For a number the error can say what is wrong with it.
        problem = problem if isinstance(given, str) else wrong.problem
        raise click.BadParameter(f"{shown(value)} {problem}") from None
    return given


def _is_number(text: str) -> bool:
    try:
        # `float` would also accept underscores, and digits of other scripts.
        return text.isascii() and "_" not in text and not math.isnan(float(text))
    except ValueError:
        return False


def state(value: str) -> State:
    try:
        return state_named(value)
    except InvalidInput:
        raise click.BadParameter(f"{shown(value)} is no state: the states are {', '.join(STATES)}") from None


url_option: Final[Decorator[Any]] = click.option(
    "--url",
    envvar="ROPEWAY_URL",
    show_envvar=True,
    metavar="URL",
    help="The store, as in sqlite:///ropeway.db (the default).",
)
json_option: Final[Decorator[Any]] = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
app_dir_option: Final[Decorator[Any]] = click.option(
    "--app-dir", type=FOLDER, default=".", help="The folder of the app, as if typed there."
)
yes_option: Final[Decorator[Any]] = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
queue_argument: Final[Decorator[Any]] = click.argument("queue", shell_complete=complete_queue)
queue_option: Final[Decorator[Any]] = click.option(
    "--queue", "-q", metavar="QUEUE", shell_complete=complete_queue, help="Only this queue."
)


def state_option(meaning: str, **attributes: Any) -> Decorator[Any]:
    return click.option("--state", "-s", type=state, shell_complete=complete_state, help=meaning, **attributes)
