"""Checks of queue names, job ids, job names and tags."""

from __future__ import annotations

import re
from typing import Final

from ..errors import InvalidName

_QUEUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,255}")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
LONGEST_JOB_NAME: Final = 255
LONGEST_TAG: Final = 64


def queue_name(given: object) -> str:
    if isinstance(given, str) and _QUEUE.fullmatch(given):
        return _plain(given)
    raise InvalidName(
        "queue name", given, "use 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit"
    )


def job_id(given: object) -> str:
    if isinstance(given, str) and _ID.fullmatch(given):
        return _plain(given)
    raise InvalidName("job id", given, "use text of 1 to 255 letters, digits, '.', '_', ':' or '-'")


def job_name(given: object) -> str:
    if (
        isinstance(given, str)
        and 0 < len(given) <= LONGEST_JOB_NAME
        and (given.isalnum() or not _UNPRINTABLE.search(given))
    ):
        return _plain(given)
    raise InvalidName("job name", given, f"use text of 1 to {LONGEST_JOB_NAME} characters without control characters")


def tag_name(given: object) -> str:
    if isinstance(given, str) and 0 < len(given) <= LONGEST_TAG and not _UNPRINTABLE.search(given):
        return _plain(given)
    raise InvalidName("tag", given, f"use text of 1 to {LONGEST_TAG} characters without control characters")


def _plain(given: str) -> str:
    """Plain `str` instead of a subclass, which stores could not encode."""
    return given if type(given) is str else str.__str__(given)
