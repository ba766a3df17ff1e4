"""Whose turn it is to claim, among failure domains that share a worker's places."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from .lanes import Lanes
from .slots import Slots

TRIPS_AT_ONCE: Final = 2
"""To each failure domain. What ends while one trip is under way need not wait for its return."""


class Places:
    """Places of the worker that a claim on its way may fill."""

    __slots__ = ("_are_kept", "_slots", "is_late", "wanted")

    def __init__(self, slots: Slots, wanted: int) -> None:
        self.wanted = wanted
        self.is_late = False
        self._slots = slots
        self._are_kept = True
        slots.reserved += wanted

    def release(self) -> None:
        if self._are_kept:
            self._are_kept = False
            self._slots.reserved -= self.wanted


class Turns:
    """The line of domains that would claim if there were a free place, the one that has waited longest first.

    Nobody claims while somebody ahead of it could. One is woken at a time, and wakes the next if places are left.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._line: dict[Lanes, None] = {}
        self._late = 0

    def wanted(self, lanes: Lanes) -> int:
        """How many jobs a domain may claim now. If none because others go first, it stands in line."""
        free = self._slots.free
        if not lanes.has_others:
            return free
        if lanes.is_dry:
            self._line.pop(lanes, None)
            return 0
        if free <= 0 or self._has_others_ahead(lanes):
            self._line.setdefault(lanes)
            self.pass_on()
            return 0
        self._line.pop(lanes, None)
        return self._part_of(lanes, free)

    def wake_next(self) -> None:
        """Call it when a place has become free, or will be before others run."""
        if (first := next(filter(self._can_claim, self._line), None)) is not None:
            first.news.set()

    def pass_on(self) -> None:
        """Wakes the next if there is a place for it."""
        if self._line and self._slots.free > 0:
            self.wake_next()

    def lapse(self, places: Places) -> None:
        """A claim is late: others may have its places."""
        places.is_late = True
        places.release()
        self._late += 1
        self.pass_on()

    def end(self, places: Places) -> None:
        """A claim was answered, or failed: places that it did not fill may be for another domain's jobs."""
        places.release()
        self._late -= places.is_late
        self.pass_on()

    def _has_others_ahead(self, lanes: Lanes) -> bool:
        return any(map(self._can_claim, takewhile(lambda other: other is not lanes, self._line)))

    def _can_claim(self, lanes: Lanes) -> bool:
        """One whose trips are all under way looks again when they return."""
        return lanes.under_way < TRIPS_AT_ONCE and not lanes.is_dry and self._part_of(lanes, 1) > 0

    def _part_of(self, lanes: Lanes, free: int) -> int:
        return lanes.part_of(free, self._slots.size, all_answer=not self._late)
