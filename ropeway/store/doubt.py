"""Errors of failed calls that may have taken effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import StoreError, StoreUnavailable

_UNKNOWN: Final = "; whether the call took effect is unknown"


def unknown(store: str, what: str) -> StoreUnavailable:
    """The error of a call that may have reached the store, but was not answered."""
    return StoreUnavailable(store, f"{what}{_UNKNOWN}")


@contextmanager
def in_doubt(is_in_doubt: bool = True) -> Iterator[None]:
    """Marks errors of the block as uncertain, because an earlier try or step of the call may have taken effect."""
    try:
        yield
    except StoreError as error:
        if not is_in_doubt or str(error).endswith(_UNKNOWN):
            raise
        raise unknown(error.store, said(error)) from error


def said(error: StoreError) -> str:
    """The reason in an error's message, without the store's URL and the note of uncertainty."""
    return str(error).removeprefix(f"{error.store}: ").removesuffix(_UNKNOWN)
