"""Errors of calls that may have taken effect although they failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import StoreError, StoreUnavailable

_UNKNOWN: Final = "; whether the call took effect is unknown"


def unknown(store: str, what: str) -> StoreUnavailable:
    """The error of a call that may have reached the store, whose answer did not come."""
    return StoreUnavailable(store, f"{what}{_UNKNOWN}")


@contextmanager
def in_doubt(is_in_doubt: bool = True) -> Iterator[None]:
    """Around the next try or step of a call, if an earlier one may have taken effect.

    An error in here says what happened to this one only: of the whole call it is unknown.
    """
    try:
        yield
    except StoreError as error:
        if not is_in_doubt or str(error).endswith(_UNKNOWN):
            raise
        raise unknown(error.store, said(error)) from error


def said(error: StoreError) -> str:
    """Why it failed: its message without the store, and without a doubt that is another error's to express."""
    return str(error).removeprefix(f"{error.store}: ").removesuffix(_UNKNOWN)
