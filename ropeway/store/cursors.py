"""Where a page of jobs ended, and the next one goes on: text for users, a place in a listing for stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

from ..errors import InvalidOption
from ..job.states import State
from ..showing import shown
from .commands import Find

BEYOND_ALL: Final = 2**62

Part: TypeAlias = Annotated[int, msgspec.Meta(ge=-BEYOND_ALL, le=BEYOND_ALL)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The last job of a page, by the state it was listed in; stores add its key in that state's order."""

    state: State

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


class PairCursor(Cursor, frozen=True, array_like=True):
    """For orders of two numbers."""

    first: Part
    second: Part


C = TypeVar("C", bound=Cursor)


def cursor_reader(kind: type[C]) -> Callable[[Find], C | None]:
    """Reads where a query goes on; None if it begins."""
    decode = msgspec.json.Decoder(kind).decode

    def read(query: Find) -> C | None:
        if query.after is None:
            return None
        try:
            cursor = decode(query.after)
        except (msgspec.MsgspecError, UnicodeError, TypeError):
            cursor = None
        if cursor is None or cursor.state not in query.states:
            raise InvalidOption("after", f"cannot be {shown(query.after)}: use the `next` of the page before")
        return cursor

    return read


def states_left(query: Find, start: Cursor | None) -> list[State]:
    """Those that are still to be listed, each once; the first of them from where the cursor stands."""
    states: list[State] = list(dict.fromkeys(query.states))
    if query.newest_first:
        states.reverse()
    return states[states.index(start.state) :] if start else states
