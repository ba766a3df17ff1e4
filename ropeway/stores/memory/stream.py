"""The event stream of one queue: a bounded list of encoded entries."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ...job.events import EVENTS_KEPT, Entry, events_in, trim_entry
from ...job.instants import Instant
from ...job.states import State
from ...store.values import Entries, StoredEntry

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode

SLACK: Final = 2
"""Between ticks the stream may hold this many times `EVENTS_KEPT`."""


class Draft(msgspec.Struct):
    """An entry that the current step is still filling."""

    what: str
    to: State | None
    detail: dict[str, Any] | None
    jobs: list[tuple[str, dict[str, Any] | None]]
    is_notice: bool = False
    """True for an entry about the whole queue. Other entries are not written if they have no jobs."""

    text: bytes = b""

    def encode(self, at: Instant) -> None:
        self.text = _encode((self.what, at, self.to, self.jobs, self.detail))


class Stream:
    """Entries are stored encoded: small, and no reader can modify them.

    They are numbered consecutively. The epoch distinguishes their ids from those of another store.
    """

    __slots__ = ("_beginning", "_epoch", "_events", "_first", "_is_whole", "_texts", "_weights")

    def __init__(self, epoch: str, beginning: int) -> None:
        self._epoch, self._beginning, self._first = epoch, beginning, beginning + 1
        self._texts: list[bytes] = []
        self._weights: list[int] = []
        self._events = 0
        self._is_whole = True
        """True if nothing was trimmed yet."""

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def last(self) -> int:
        """The number of the newest entry, or of the one before the first if there is none."""
        return self._first + len(self._texts) - 1

    def append(self, text: bytes, events: int) -> None:
        self._texts.append(text)
        self._weights.append(events)
        self._events += events
        if self._events > SLACK * EVENTS_KEPT:
            self.trim()

    def trim(self) -> None:
        """Keeps about `EVENTS_KEPT` events, and always the newest entry."""
        gone = 0
        while self._events > EVENTS_KEPT and gone < len(self._texts) - 1:
            self._events -= self._weights[gone]
            gone += 1
        self._forget(gone)

    def trim_to(self, keep: int) -> None:
        """Keeps at most `keep` events, but always one job of the newest entry."""
        excess, gone = self._events - max(0, keep), 0
        while gone < len(self._texts) - 1 and self._weights[gone] <= excess:
            excess -= self._weights[gone]
            gone += 1
        if excess > 0 and self._texts:
            is_newest = gone == len(self._texts) - 1
            entry = trim_entry(_decode(self._texts[gone]), self._weights[gone], excess, is_newest=is_newest)
            if entry is None:
                gone += 1
            else:
                self._texts[gone] = _encode(entry)
                self._weights[gone] = events_in(entry.what, entry.to, len(entry.jobs))
                self._is_whole = False
        self._forget(gone)
        self._events = sum(self._weights)

    def _forget(self, gone: int) -> None:
        if gone:
            del self._texts[:gone], self._weights[:gone]
            self._first += gone
            self._is_whole = False

    def read(self, after: str | None, *, inclusive: bool, limit: int) -> Entries:
        if after == "now":
            return Entries([], self._id(self.last))
        number = self._beginning if after is None else self._number(after)
        start = self._first
        if number is not None and number >= start:
            start = number if inclusive else number + 1
        begin = start - self._first
        texts = self._texts[begin : begin + max(0, limit)]
        entries = [StoredEntry(self._id(start + at), _decode(text)) for at, text in enumerate(texts)]
        gap = after is not None and self._is_gap(number)
        return Entries(entries, self._id(start + len(texts) - 1), gap)

    def read_back(self, before: str | None, *, limit: int) -> Entries:
        """The newest entries first; or those before one that is still there."""
        number = self.last + 1 if before is None else self._number(before)
        if number is None or number < self._first:
            return Entries([], before or self._id(self.last), gap=True)
        end = number - self._first
        texts = self._texts[max(0, end - max(0, limit)) : end]
        entries = [StoredEntry(self._id(number - 1 - at), _decode(text)) for at, text in enumerate(reversed(texts))]
        return Entries(entries, entries[-1].id if entries else before or self._id(self.last))

    def _is_gap(self, number: int | None) -> bool:
        if number == self._beginning:
            return not self._is_whole
        return number is None or number < self._first

    def _id(self, number: int) -> str:
        return f"{self._epoch}-{number}"

    def _number(self, id: str) -> int | None:
        """None for an id that this stream never gave out."""
        epoch, _, text = id.partition("-")
        if epoch != self._epoch or not (text.isascii() and text.isdecimal()):
            return None
        number = int(text)
        return number if self._beginning <= number <= self.last else None
