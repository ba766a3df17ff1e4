"""Where data does not fit its type: every place that the library which checked it reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from .models import is_model_error

MOST_LISTED: Final = 20
"""Most that are listed of one value."""
_AT: Final = re.compile(r" - at `(\$[^`]*)`\Z")


class WrongValue(NamedTuple):
    path: str
    """As in `$.rows[3].when`; `$` is the whole value."""
    problem: str

    def __str__(self) -> str:
        return self.problem if self.path == "$" else f"{self.problem} - at `{self.path}`"


def wrong_values(error: BaseException) -> list[WrongValue]:
    """What an error of msgspec is about; one that a pydantic model caused may have several places."""
    text = str(error)
    at = _AT.search(text)
    path = at[1] if at else "$"
    cause: Any = error.__cause__
    if is_model_error(cause):
        return [WrongValue(path + path_of(each["loc"]), each["msg"]) for each in cause.errors()]
    return [WrongValue(path, text[: at.start()] if at else text)]


def listed(found: Sequence[WrongValue]) -> str:
    """All of them in one line of text, up to a limit."""
    more = f"; and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return "; ".join(map(str, found[:MOST_LISTED])) + more


def path_of(steps: Iterable[object]) -> str:
    """From the keys and positions on the way into a value: `.rows[3].when`."""
    return "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in steps)
