"""Reading jobs from the command line, standard input and files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from ..client.new_jobs import Call
from ..errors import InvalidInput
from ..job.codec import Json, decode
from ..job.options import JobOptions
from .interrupts import interruptible
from .spelling import option_from_json


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a bulk file."""

    name: str
    data: Json = None
    options: dict[str, Any] = {}


def read_data(given: str | None) -> Json:
    """JSON from the argument, from standard input for `-`, or from a file for `@FILE`; null if there is none."""
    if given is None:
        return None
    if given == "-":
        text, where = _standard_input(), "standard input"
    elif given.startswith("@"):
        text, where = _file(given[1:]), given[1:]
    else:
        text, where = given, "the data"
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        hint = "; text needs quotes of its own: '\"text\"'" if where == "the data" else ""
        raise click.UsageError(f"{where} is not JSON: {error}{hint}") from None


def read_bulk(file: str, defaults: Mapping[str, Any]) -> dict[int, Call]:
    """The jobs of a file of JSON lines, by line number; blank lines are skipped."""
    text, _ = read_text(file)
    lines = text.splitlines()
    return {number: _call(line, number, defaults) for number, line in enumerate(lines, 1) if line.strip()}


def read_text(file: str) -> tuple[str, str]:
    """The text of a file, of standard input for `-`, and the name for errors."""
    return (_standard_input(), "standard input") if file == "-" else (_file(file), file)


def _call(text: str, number: int, defaults: Mapping[str, Any]) -> Call:
    try:
        line = msgspec.json.decode(text, type=Line)
        own = {option: option_from_json(option, value) for option, value in line.options.items()}
    except (msgspec.MsgspecError, RecursionError, click.BadParameter, InvalidInput) as error:
        raise click.UsageError(f"line {number}: {error}; nothing was added") from None
    # The queue checks the options.
    return Call(line.name, line.data, cast(JobOptions, {**defaults, **own}))


def _standard_input() -> str:
    with interruptible():
        if sys.stdin.isatty():
            click.echo("Reading standard input; end it with Ctrl-D.", err=True)
        return _text(sys.stdin.buffer.read(), "standard input")


def _file(name: str) -> str:
    try:
        return _text(Path(name).read_bytes(), name)
    except OSError as error:
        raise click.UsageError(f"{name!r} cannot be read: {error.strerror}") from None


def _text(read: bytes, where: str) -> str:
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{where} is not UTF-8: {error}") from None
