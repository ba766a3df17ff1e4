"""Parsing job options from the command line and from JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from ..errors import InvalidInput
from ..job.backoff import Backoff
from ..job.dedupe import Dedupe
from ..job.durations import Duration
from ..job.retention import Keep, KeepOption
from ..showing import shown
from .options import duration


def instant(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{shown(text)} is no instant: use one such as 2030-01-31T09:00:00Z") from None
    # A time without a zone is in the local one.
    return moment if moment.tzinfo else moment.astimezone()


def deadline(text: str) -> Duration | datetime:
    """`90`, `5m`, or an instant."""
    try:
        return duration(text)
    except click.BadParameter:
        pass
    try:
        return instant(text)
    except click.BadParameter:
        problem = "is neither a duration, as in 5m, nor an instant, as in 2030-01-31T09:00:00Z"
        raise click.BadParameter(f"{shown(text)} {problem}") from None


def backoff(text: str) -> Backoff:
    """`5s`, `linear:5s`, `exponential:1s,max=1h,jitter=0.5`, `custom:name`."""
    kind, _, rest = text.rpartition(":")
    try:
        if kind == "custom":
            return Backoff.custom(rest)
        delay, *extras = rest.split(",")
        return _backoff(kind or "fixed", duration(delay), dict(_extra(extra) for extra in extras))
    except (InvalidInput, ValueError, TypeError, click.BadParameter) as error:
        raise click.BadParameter(
            f"{shown(text)} is no backoff ({error}): use 5s, linear:5s or exponential:1s,max=1h"
        ) from None


def _backoff(kind: str, delay: Duration, extras: dict[str, Any]) -> Backoff:
    match kind:
        case "fixed":
            return Backoff.fixed(delay, **extras)
        case "linear":
            return Backoff.linear(delay, **extras)
        case "exponential":
            return Backoff.exponential(delay, **extras)
    raise ValueError(f"{kind!r} is unknown")


def _extra(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    match name:
        case "max":
            return "max_delay", duration(value)
        case "jitter":
            return "jitter", float(value)
    raise ValueError(f"{name!r} is unknown")


def keep(text: str) -> KeepOption:
    """`yes` removes at once, `no` never; a number keeps that many jobs, a duration keeps them that long."""
    match text.lower():
        case "yes" | "true":
            return True
        case "no" | "false":
            return False
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else Keep(age=duration(text))


def _dedupe(given: dict[str, Any]) -> Dedupe:
    """`{"key": "welcome-42", "mode": "throttle", "ttl": "1h"}`; without a key it is made of name and data."""
    if unknown := given.keys() - {"key", "mode", "ttl"}:
        raise click.BadParameter(f"dedupe has the unknown key {shown(min(unknown))}: there are key, mode and ttl")
    how = {name: value for name, value in given.items() if name != "key"}
    return Dedupe(given["key"], **how) if "key" in given else Dedupe.by_data(**how)


def option_from_json(option: str, value: Any) -> Any:
    """Parses options from JSON: backoffs and ages are text as on the command line, a dedupe is a key or an object."""
    match option, value:
        case "dedupe", dict():
            return _dedupe(value)
        case "expires", str():
            return deadline(value)
        case "backoff", str():
            return backoff(value)
        case (("remove_on_complete" | "remove_on_fail"), str()):
            return keep(value)
    return value
