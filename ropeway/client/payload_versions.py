"""Versions of a job type's data, and the functions that lead from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ..errors import InvalidOption
from ..job.marks import Mark
from ..job.options import JobOptions, stored_options
from ..job.record import JobRecord
from ..showing import error_text, shown

Upgrade: TypeAlias = Callable[[Any], Any]
"""Takes the data of one version as JSON has it, and answers that of the next."""

VERSION_MARK: Final = "version"
"""The mark of a job whose handler has written data of another version than that of its options."""


class NoUpgrade(Exception):
    """Data of an older version could not be brought to the newest."""


def refuse_version(options: JobOptions) -> None:
    """For tasks: nothing would bring their arguments to another version."""
    if "version" in options:
        raise InvalidOption("version", "is for job types: JobType(name, Data, version=2, upgrade={1: function})")


def checked_upgrades(name: str, version: int, given: Any) -> dict[int, Upgrade]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidOption("upgrade", f"of job type {name!r} cannot be {shown(given)}: give functions by version")
    for old, function in given.items():
        if isinstance(old, bool) or not isinstance(old, int) or not 1 <= old < version:
            problem = f"of job type {name!r} leads from version {shown(old)}: use versions from 1 to {version - 1}"
            raise InvalidOption("upgrade", problem if version > 1 else f"{problem}, and say version=2 or more")
        if not callable(function):
            raise InvalidOption("upgrade", f"from version {old} of {name!r} is {shown(function)}: give a function")
    return dict(given)


def version_of(record: JobRecord) -> int:
    """The version of a claimed job's data."""
    if record.marks and (version := marked_version(record)) is not None:
        return version
    return 1 if record.options == "{}" else stored_options(record.options).version


def marked_version(record: JobRecord) -> int | None:
    """The version of data that a handler has written."""
    marks = (int(mark.value) for mark in record.marks if mark.name == VERSION_MARK and mark.value.isdecimal())
    return next(marks, None)


def version_mark(version: int) -> Mark:
    return Mark(VERSION_MARK, str(version))


def upgraded(data: Any, old: int, version: int, upgrades: Mapping[int, Upgrade]) -> Any:
    """The data, step by step, from the old version to the given one."""
    for step in range(old, version):
        if (function := upgrades.get(step)) is None:
            raise NoUpgrade(f"it is of version {old}, and nothing leads from version {step} to {step + 1}")
        try:
            data = function(data)
        except Exception as error:
            raise NoUpgrade(
                f"its upgrade from version {step} failed: {type(error).__name__}: {error_text(error)}"
            ) from error
    return data
