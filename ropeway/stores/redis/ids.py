"""Ids as the server keeps them: a UUID in 22 letters instead of 36, because it stands in several keys for each job.

The letters are those of base64, which JSON and MessagePack take as they are. Other ids stay as they are, but for those
that could be mistaken: they get a `=`, which no short id begins with.
"""

from __future__ import annotations

import binascii
import struct
from binascii import a2b_base64, b2a_base64, hexlify
from collections.abc import Iterable
from typing import Final

_SHORT: Final = 22
_LONG: Final = 36
_MARK: Final = ord("=")
_groups: Final = struct.Struct("8s4s4s4s12s").unpack

DAMAGED: Final = (binascii.Error, struct.error)
"""What is raised for 22 letters that no UUID was made into."""


def shortened(id: str) -> str:
    if len(id) == _LONG and id[8] == id[13] == id[18] == id[23] == "-" and id == id.lower():
        try:
            number = bytes.fromhex(id.replace("-", ""))
        except ValueError:
            return id
        # Spaces count for nothing, and more dashes make it shorter.
        return b2a_base64(number)[:_SHORT].decode() if len(number) == 16 else id
    return f"={id}" if len(id) == _SHORT or id[:1] == "=" or not id.isascii() else id


def all_shortened(ids: Iterable[str]) -> list[str]:
    return [shortened(id) for id in ids]


def in_full(stored: bytes) -> bytes:
    if len(stored) == _SHORT and stored[0] != _MARK:
        return b"-".join(_groups(hexlify(a2b_base64(stored + b"=="))))
    return stored[1:] if stored[:1] == b"=" else stored


def text_of(stored: bytes | str) -> str:
    return in_full(stored if isinstance(stored, bytes) else stored.encode()).decode()


def texts_of(stored: Iterable[bytes]) -> list[str]:
    return [in_full(id).decode() for id in stored]
