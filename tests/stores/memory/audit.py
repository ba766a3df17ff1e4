"""Looks into a memory store and compares what it keeps twice."""

from __future__ import annotations

from ropeway.job.states import FINAL, STATES
from ropeway.stores.memory import MemoryStore
from ropeway.stores.memory.book import Book
from ropeway.stores.memory.deadlines import Deadlines
from ropeway.stores.memory.keys import BLOCK, SortedKeys
from ropeway.stores.memory.shelf import Shelf


def book_of(store: MemoryStore, queue: str) -> Book:
    assert store._place is not None
    return store._place.book(queue)


def audit(store: MemoryStore) -> None:
    """Every shelf holds what the jobs say, in order, in blocks that are neither empty nor too long."""
    assert store._place is not None
    for book in store._place.books.values():
        _audit_book(book)


def _audit_book(book: Book) -> None:
    assert not book._original
    assert not book._shelved
    for state in STATES:
        shelf = Shelf(state, book.jobs)
        shelf.add([job for job in book.jobs.values() if job.state == state])
        _compare(book.shelf(state).counted, shelf.counted)
        _compare(book.shelf(state)._kept, shelf._kept)
        by_name = book.shelf(state)._by_name
        if by_name is not None:
            assert by_name.keys() == shelf._lines().keys()
            for name, line in shelf._lines().items():
                _compare(by_name[name], line)
        by_age = book.shelf(state)._by_age
        if by_age is not None:
            _compare(by_age, shelf.oldest())
    for kept, states in ((book._locks, ("active",)), (book._expiries, FINAL)):
        made = Deadlines(kept._instant)
        made.add([job for job in book.jobs.values() if job.state in states])
        _compare(kept.keys, made.keys)
    assert book.pasts._pasts.keys() <= book.jobs.keys()


def _compare(kept: SortedKeys, made: SortedKeys) -> None:
    assert [*kept] == [*made]
    assert len(kept) == len(made)
    assert kept._lasts == [block[-1] for block in kept._blocks]
    assert all(0 < len(block) <= 2 * BLOCK for block in kept._blocks)
