"""The options of jobs on the command line."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, Final

import click

from ..job.dedupe import MODES, WITH_TTL, Dedupe
from .completing import complete_queue
from .options import duration
from .spelling import backoff, deadline, instant, keep

_OPTIONS: Final = {
    "id": click.option("--id", help="An id of your own: a second add of it finds the first job."),
    "delay": click.option("--delay", type=duration, help="Wait this long, as in 90, 5m or '1 hour'."),
    "at": click.option("--at", type=instant, help="Wait until this instant, as in 2030-01-31T09:00+01:00."),
    "priority": click.option("--priority", type=int, help="Lower goes first; 0 by default."),
    "lifo": click.option("--lifo", is_flag=True, default=None, help="Ahead of all others of its priority."),
    "tags": click.option("--tag", "tags", multiple=True, help="A word to find it by; can be repeated."),
    "attempts": click.option("--attempts", type=int, help="How often to try, the first time included."),
    "backoff": click.option(
        "--backoff", type=backoff, help="Pause before a retry: 5s, exponential:1s,max=1h,jitter=0.5."
    ),
    "timeout": click.option("--timeout", type=duration, help="How long one attempt may take."),
    "expires": click.option(
        "--expires", type=deadline, metavar="WHEN", help="Fail it unless it is started within 1h, or by an instant."
    ),
    "dead_letter": click.option(
        "--dead-letter", metavar="QUEUE", shell_complete=complete_queue, help="Copy it there if it fails for good."
    ),
    "webhook": click.option("--webhook", metavar="URL", help="Report its end to this URL."),
    "version": click.option("--data-version", "version", type=int, help="The version of its data; 1 by default."),
    "dedupe": click.option("--dedupe", metavar="KEY", help="Add it only if no other job holds this key."),
    "dedupe_by_data": click.option(
        "--dedupe-by-data", is_flag=True, default=None, help="The same, with its name and data as the key."
    ),
    "dedupe_mode": click.option(
        "--dedupe-mode", type=click.Choice(MODES), help="What to do if a job holds it; until-final by default."
    ),
    "dedupe_ttl": click.option(
        "--dedupe-ttl", type=duration, metavar="DURATION", help=f"How long, for {' and '.join(WITH_TTL)}."
    ),
    "remove_on_complete": click.option(
        "--remove-on-complete", type=keep, metavar="KEEP", help="yes (or 0), no, a count, or an age such as 1h."
    ),
    "remove_on_fail": click.option(
        "--remove-on-fail", type=keep, metavar="KEEP", help="The same, for failed and cancelled jobs."
    ),
}
_ONLY_ADDED: Final = ("id", "delay", "at", "dedupe", "dedupe_by_data", "dedupe_mode", "dedupe_ttl")
"""Options of a job that is added now, and not of those that a schedule makes."""


def with_job_options(command: Callable[..., None]) -> Any:
    """Adds all options of jobs to a command; it receives those that were given as `options`, for `Queue.add`."""
    return _with(command, _OPTIONS)


def with_template_options(command: Callable[..., None]) -> Any:
    """The same for the jobs of a schedule, for `Queue.schedule`."""
    return _with(command, [name for name in _OPTIONS if name not in _ONLY_ADDED])


def _with(command: Callable[..., None], names: Collection[str]) -> Any:
    @wraps(command)
    def packed(**given: Any) -> None:
        options = {name: given.pop(name) for name in names}
        command(options=_read({name: value for name, value in options.items() if value not in (None, ())}), **given)

    decorated: Any = packed
    for name in reversed([*names]):
        decorated = _OPTIONS[name](decorated)
    return decorated


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """Joins options that are one in Python."""
    if "at" in options:
        if "delay" in options:
            raise click.UsageError("give --delay or --at, not both")
        options["delay"] = options.pop("at")
    key, by_data = options.pop("dedupe", None), options.pop("dedupe_by_data", False)
    how = {name.removeprefix("dedupe_"): options.pop(name) for name in ("dedupe_mode", "dedupe_ttl") if name in options}
    if key is not None and by_data:
        raise click.UsageError("give --dedupe or --dedupe-by-data, not both")
    if how and key is None and not by_data:
        raise click.UsageError(f"--dedupe-{min(how)} needs a key: give --dedupe KEY or --dedupe-by-data")
    if by_data:
        options["dedupe"] = Dedupe.by_data(**how)
    elif key is not None:
        options["dedupe"] = Dedupe(key, **how)
    return options
