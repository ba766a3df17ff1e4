"""The order in which failure domains claim, if several share a worker's slots."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from .feeds import DomainFeeds
from .slots import Slots

TRIPS_AT_ONCE: Final = 2
"""Per failure domain: jobs that end while one trip is in flight need not wait for its return."""


class Reservation:
    """Slots reserved for the jobs of one claim in flight."""

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
    """The domains that would claim if a slot were free, longest waiting first.

    No domain claims while one ahead of it could. One is woken at a time, and wakes the next if slots are left.
    """

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._line: dict[DomainFeeds, None] = {}
        self._late = 0

    def wanted(self, feeds: DomainFeeds) -> int:
        """How many jobs a domain may claim now. If others go first, none, and it waits in line."""
        free = self._slots.free
        if not feeds.has_others:
            return free
        if feeds.is_dry:
            self._line.pop(feeds, None)
            return 0
        if free <= 0 or self._has_others_ahead(feeds):
            self._line.setdefault(feeds)
            self.pass_on()
            return 0
        self._line.pop(feeds, None)
        return self._part_of(feeds, free)

    def wake_next(self) -> None:
        """Call it when a slot has become free, or will be before other tasks run."""
        if (first := next(filter(self._can_claim, self._line), None)) is not None:
            first.wake_up.set()

    def pass_on(self) -> None:
        """Wakes the next domain if there is a slot for it."""
        if self._line and self._slots.free > 0:
            self.wake_next()

    def lapse(self, reservation: Reservation) -> None:
        """A claim is late: other domains may use its slots."""
        reservation.is_late = True
        reservation.release()
        self._late += 1
        self.pass_on()

    def end(self, reservation: Reservation) -> None:
        """A claim was answered, or failed: slots that it did not fill may go to another domain."""
        reservation.release()
        self._late -= reservation.is_late
        self.pass_on()

    def _has_others_ahead(self, feeds: DomainFeeds) -> bool:
        return any(map(self._can_claim, takewhile(lambda other: other is not feeds, self._line)))

    def _can_claim(self, feeds: DomainFeeds) -> bool:
        """A domain whose trips are all in flight looks again when they return."""
        return feeds.under_way < TRIPS_AT_ONCE and not feeds.is_dry and self._part_of(feeds, 1) > 0

    def _part_of(self, feeds: DomainFeeds, free: int) -> int:
        return feeds.part_of(free, self._slots.size, all_answer=not self._late)
