"""The instants by which jobs have to be started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...job.instants import Instant
from .keys import Key, SortedKeys


class StartDeadlines:
    """Jobs by the instant at which they expire, from their add to their first claim or their end.

    `note_undo` is called with what undoes each change.
    """

    __slots__ = ("_by_id", "_keys", "_note_undo")

    def __init__(self, note_undo: Callable[[Callable[..., Any], tuple[Any, ...]], None]) -> None:
        self._keys: Final = SortedKeys()
        self._by_id: Final[dict[str, Key]] = {}
        self._note_undo = note_undo

    @property
    def first(self) -> Instant | None:
        least = self._keys.least
        return None if least is None else least[0]

    def add(self, id: str, deadline: Instant, number: int) -> None:
        self._add((deadline, number, id))
        self._note_undo(self._remove, (id,))

    def remove(self, id: str) -> None:
        key = self._remove(id)
        if key is not None:
            self._note_undo(self._add, (key,))

    def due(self, now: Instant, most: int) -> list[str]:
        return [id for _, _, id in self._keys.first(most, before=(now + 1,))]

    def _add(self, key: Key) -> None:
        self._by_id[key[2]] = key
        self._keys.add([key])

    def _remove(self, id: str) -> Key | None:
        key = self._by_id.pop(id, None)
        if key is not None:
            self._keys.remove([key])
        return key
