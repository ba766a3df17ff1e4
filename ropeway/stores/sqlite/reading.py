"""From the JSON that statements answer to values.

Statements answer bytes: a text that was damaged in the file is then one bad job's, not the whole page's.
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


def reader(kind: type[T] | Any) -> Callable[[bytes], T]:
    """What is not UTF-8 reads as NUL."""
    decode: Final = msgspec.json.Decoder(kind).decode

    def read(encoded: bytes) -> T:
        try:
            return decode(encoded)  # type: ignore[no-any-return]  # the decoder's type is that of `kind`
        except UnicodeDecodeError:
            return decode(encoded.decode("utf-8", "ropeway.damaged"))  # type: ignore[no-any-return]

    return read
