"""Cursors of keyset pages: opaque text for users, a position in an index for stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

from ..errors import InvalidOption
from ..job.states import FINAL, State
from ..showing import shown
from .commands import Find

BEYOND_ALL: Final = 2**62

Part: TypeAlias = Annotated[int, msgspec.Meta(ge=-BEYOND_ALL, le=BEYOND_ALL)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The position of a page's last job: its state, and in subclasses its sort key."""

    state: State

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class PairCursor(Cursor, frozen=True, array_like=True):
    """A cursor with a sort key of two numbers."""

    first: Part
    second: Part


C = TypeVar("C", bound=Cursor)


def cursor_reader(kind: type[C]) -> Callable[[Find], C | None]:
    """Makes a function that decodes the cursor of a query; None for a first page."""
    decode = msgspec.json.Decoder(kind).decode

    def read(query: Find) -> C | None:
        if query.after is None:
            return None
        try:
            cursor = decode(query.after)
        except (msgspec.MsgspecError, UnicodeError, TypeError):
            cursor = None
        if cursor is None or cursor.state not in query.states or (query.stale and cursor.state not in FINAL):
            raise InvalidOption("after", f"cannot be {shown(query.after)}: use the `next` of the page before")
        return cursor

    return read


def states_left(query: Find, start: Cursor | None) -> list[State]:
    """The states still to be listed, each once, starting with that of the cursor."""
    states: list[State] = list(dict.fromkeys(query.states))
    if query.stale:
        states = [state for state in states if state in FINAL]
    if query.newest_first:
        states.reverse()
    return states[states.index(start.state) :] if start else states
