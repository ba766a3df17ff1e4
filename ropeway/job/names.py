"""Checks of the names and ids that users choose."""

from __future__ import annotations

import re
from inspect import getattr_static
from typing import Annotated, Final, TypeAlias

import msgspec

from ..errors import InvalidName

LONGEST_ID: Final = 255
LONGEST_JOB_NAME: Final = 255
LONGEST_SCHEDULE_ID: Final = 200
LONGEST_TAG: Final = 64
LONGEST_QUEUE: Final = 128
QUEUE_PATTERN: Final = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_QUEUE - 1}}}"
_QUEUE: Final = re.compile(QUEUE_PATTERN)
ID_PATTERN: Final = rf"[A-Za-z0-9._:-]{{1,{LONGEST_ID}}}"
_ID: Final = re.compile(ID_PATTERN)
JobId: TypeAlias = Annotated[str, msgspec.Meta(pattern=rf"\A{ID_PATTERN}\Z")]
"""An id that stores may write into other texts as it is; checked when it is decoded."""
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def queue_name(given: object) -> str:
    if isinstance(given, str) and _QUEUE.fullmatch(given):
        return plain(given)
    raise InvalidName(
        "queue name", given, "use 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit"
    )


def is_queue_name(text: str) -> bool:
    return _QUEUE.fullmatch(text) is not None


def job_id(given: object) -> str:
    if isinstance(given, str) and _ID.fullmatch(given):
        return plain(given)
    # Without running its code: any object may raise when it is asked.
    if getattr_static(given, "id", None) is not None:
        raise InvalidName("job id", given, "use its id, as in job.id")
    raise InvalidName("job id", given, "use text of 1 to 255 letters, digits, '.', '_', ':' or '-'")


def schedule_id(given: object) -> str:
    if isinstance(given, str) and len(given) <= LONGEST_SCHEDULE_ID and _ID.fullmatch(given):
        return plain(given)
    allowed = f"use text of 1 to {LONGEST_SCHEDULE_ID} letters, digits, '.', '_', ':' or '-'"
    raise InvalidName("schedule id", given, allowed)


def job_name(given: object) -> str:
    if (
        isinstance(given, str)
        and 0 < len(given) <= LONGEST_JOB_NAME
        and (given.isalnum() or not _UNPRINTABLE.search(given))
    ):
        # As `plain`, without another call: every add checks a name.
        return given if type(given) is str else plain(given)
    raise InvalidName("job name", given, f"use text of 1 to {LONGEST_JOB_NAME} characters without control characters")


def tag_name(given: object) -> str:
    if isinstance(given, str) and 0 < len(given) <= LONGEST_TAG and not _UNPRINTABLE.search(given):
        return plain(given)
    raise InvalidName("tag", given, f"use text of 1 to {LONGEST_TAG} characters without control characters")


def plain(given: str) -> str:
    """Plain `str` instead of a subclass, which stores could not encode."""
    return given if type(given) is str else str.__str__(given)


def is_printable(text: str) -> bool:
    """True without control characters, and with nothing that a store could not hold."""
    return text.isprintable() or not _UNPRINTABLE.search(text)
