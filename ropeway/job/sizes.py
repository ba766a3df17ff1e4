"""Sizes of memory, as users write them."""

from __future__ import annotations

import re
from typing import Final

from ..errors import InvalidOption
from ..showing import shown
from .numbers import whole

MOST_BYTES: Final = 2**63 - 1
_UNITS: Final = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_TEXT: Final = re.compile(r"([0-9]{1,9}) ?([KMG]i?B)", re.IGNORECASE)


def size_in_bytes(option: str, given: object) -> int:
    """A number of bytes, or a text such as "512 MB" or "2GiB"."""
    if isinstance(given, str):
        read = _TEXT.fullmatch(given)
        if read is None:
            raise InvalidOption(option, f'cannot be {shown(given)}: use bytes, or a text such as "512 MB" or "2 GiB"')
        return whole(option, int(read[1]) * _UNITS[read[2].upper()], 1, MOST_BYTES)
    return whole(option, given, 1, MOST_BYTES)
