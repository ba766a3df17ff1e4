"""Decodes the JSON that statements return.

Statements return bytes, so that a text that was damaged in the file spoils one job and not the whole page.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")


# A NUL is in no valid JSON text, so damaged data can never be taken for other data.
def _as_nul(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\\u0000", error.end


codecs.register_error("ropeway.damaged", _as_nul)


def decoder(kind: type[T] | Any) -> Callable[[bytes], T]:
    """Returns a decoder of `kind`, which reads what is not UTF-8 as NUL."""
    decode: Final = msgspec.json.Decoder(kind).decode

    def read(encoded: bytes) -> T:
        try:
            return decode(encoded)  # type: ignore[no-any-return]  # the decoder's type is that of `kind`
        except UnicodeDecodeError:
            return decode(encoded.decode("utf-8", "ropeway.damaged"))  # type: ignore[no-any-return]

    return read
