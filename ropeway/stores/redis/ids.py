"""Short forms of ids: a UUID has 22 letters on the server instead of 36, because several keys hold it for each job.

The letters are those of base64, which JSON and MessagePack take as they are. Other ids stay as they are, but for those
that could be mistaken: they get a `=`, which no short id begins with.
"""

from __future__ import annotations

import binascii
import struct
from binascii import a2b_base64, b2a_base64, hexlify
from collections.abc import Iterable, Sequence
from typing import Final

from uuid_utils import UUID

_SHORT: Final = 22
_LONG: Final = 36
_MARK: Final = ord("=")
_groups: Final = struct.Struct("8s4s4s4s12s").unpack

DAMAGED: Final = (binascii.Error, struct.error)
"""What is raised for 22 letters that no UUID was made into."""


def shortened(id: str) -> str:
    if len(id) == _LONG:
        try:
            number = UUID(id)
        except ValueError:
            pass
        else:
            # A UUID has other spellings, which are other ids.
            if str(number) == id:
                return b2a_base64(number.bytes)[:_SHORT].decode()
    return f"={id}" if len(id) == _SHORT or id[:1] == "=" or not id.isascii() else id


def all_shortened(ids: Sequence[str]) -> list[str]:
    """`shortened` for many ids; if all are UUIDs, in one pass."""
    if len(ids) < 2 or set(map(len, ids)) != {_LONG}:
        return [shortened(id) for id in ids]
    # With two bytes between them each begins a letter of its own.
    together, number = "0000".join(ids), len(ids)
    dashes = "-" * number
    if together != together.lower() or any(together[at::40] != dashes for at in (8, 13, 18, 23)):
        return [shortened(id) for id in ids]
    try:
        packed = bytes.fromhex(together.replace("-", ""))
    except ValueError:
        packed = b""
    # More dashes or spaces make it shorter.
    if len(packed) != 18 * number - 2:
        return [shortened(id) for id in ids]
    letters = b2a_base64(packed).decode()
    return [letters[at : at + _SHORT] for at in range(0, 24 * number, 24)]


def in_full(stored: bytes) -> bytes:
    if len(stored) == _SHORT and stored[0] != _MARK:
        return b"-".join(_groups(hexlify(a2b_base64(stored + b"=="))))
    return stored[1:] if stored[:1] == b"=" else stored


def text_of(stored: bytes | str) -> str:
    return in_full(stored if isinstance(stored, bytes) else stored.encode()).decode()


def texts_of(stored: Iterable[bytes]) -> list[str]:
    return [in_full(id).decode() for id in stored]
