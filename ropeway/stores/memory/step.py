"""One atomic step: all of a verb, or nothing of it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ...job.instants import Instant
from ...job.record import JobRecord
from ...job.retention import Retention
from ...store.values import RevokedLock, Topic
from .book import Book
from .place import Place


class Step:
    """Holds the store's lock, and ends in a commit of every book that it touched, or in none.

    `now` is the same instant for all that happens in it.
    """

    __slots__ = ("_books", "_reads_clock", "_revoked", "_wakes", "ended", "now", "place")

    def __init__(self, place: Place, now: Instant | None) -> None:
        self.place = place
        self.now: Instant = now or 0
        self._reads_clock = now is None
        self.ended: list[tuple[JobRecord, Retention]] = []
        """Jobs that became final in it, and how long each is kept."""
        self._books: dict[str, Book] = {}
        self._revoked: list[tuple[str, RevokedLock]] = []
        self._wakes: set[tuple[Topic, str]] = set()

    def __enter__(self) -> Self:
        self.place.lock.acquire()
        if self._reads_clock:
            self.now = self.place.clock.now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._commit()
            else:
                self._roll_back()
        finally:
            self.place.lock.release()

    def book(self, queue: str) -> Book:
        book = self._books.get(queue)
        if book is None:
            book = self._books[queue] = self.place.book(queue)
            book.begin()
        return book

    def revoke(self, queue: str, lock: RevokedLock) -> None:
        self._revoked.append((queue, lock))
        self._wakes.add(("revoked", queue))

    def wake(self, queue: str) -> None:
        """A claim may find more than before."""
        self._wakes.add(("jobs", queue))

    def _commit(self) -> None:
        try:
            for book in self._books.values():
                book.prepare(self.now)
        except BaseException:
            self._roll_back()
            raise
        for book in self._books.values():
            is_new = book.name not in self.place.books
            if book.commit(self.now):
                self._wakes.add(("events", book.name))
            if is_new and not book.is_blank:
                self.place.books[book.name] = book
        for queue, lock in self._revoked:
            self.place.revoked.append(queue, lock, self.now)
        self.place.hub.wake(self._wakes)

    def _roll_back(self) -> None:
        for book in self._books.values():
            book.roll_back()
