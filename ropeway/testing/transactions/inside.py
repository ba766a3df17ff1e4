"""Transactions that callers share with a `FakeStore`: for async code, and blocking."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ...job.outcomes import Outcome
from ...job.record import NewJob
from ...store.values import MISSING, Added, Answer
from .libraries import Transactional
from .pending_adds import PendingAdd, StoresAtCommit, run_immediately, verdicts


class Inside:
    def __init__(self, store: StoresAtCommit, given: object, transaction: Transactional) -> None:
        self._store, self._given, self._transaction = store, given, transaction
        self._outcome: tuple[str, Outcome] | None = None

    async def begin(self) -> Any:
        answer = await _done(self._transaction.begin())
        return answer or self._given

    async def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return _add(self._store, self._transaction, bundle)

    async def settle(self, queue: str, outcome: Outcome) -> Answer:
        self._outcome = queue, outcome
        return _look(self._store, queue, outcome)

    async def commit(self) -> None:
        await _done(self._transaction.commit())
        _settle(self._store, self._outcome)

    async def roll_back(self) -> None:
        await _done(self._transaction.roll_back())


class BlockingInside:
    def __init__(self, store: StoresAtCommit, given: object, transaction: Transactional) -> None:
        self._store, self._given, self._transaction = store, given, transaction
        self._outcome: tuple[str, Outcome] | None = None
        self._has_begun = False

    def begin(self) -> Any:
        answer = self._transaction.begin()
        self._has_begun = True
        return answer or self._given

    def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return _add(self._store, self._transaction, bundle)

    def settle(self, queue: str, outcome: Outcome) -> Answer:
        self._outcome = queue, outcome
        return _look(self._store, queue, outcome)

    def commit(self) -> None:
        self._transaction.commit()
        _settle(self._store, self._outcome)

    def roll_back(self) -> None:
        # A transaction that was refused belongs to its caller.
        if self._has_begun:
            self._transaction.roll_back()


async def _done(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _add(store: StoresAtCommit, transaction: Transactional, bundle: Sequence[NewJob]) -> list[Added]:
    answers, new = verdicts(store, bundle, transaction.pending())
    if new:
        transaction.on_commit(PendingAdd(store, new, run_immediately(store.clock())))
    return answers


def _look(store: StoresAtCommit, queue: str, outcome: Outcome) -> Answer:
    """What `settle` would answer; it is executed at the commit."""
    [record] = run_immediately(store.get(queue, [outcome.id]))
    if record is None:
        return MISSING
    is_held = record.state == "active" and record.token == outcome.token
    return Answer("done" if is_held else "lost", record.state)


def _settle(store: StoresAtCommit, decided: tuple[str, Outcome] | None) -> None:
    if decided is not None:
        queue, outcome = decided
        run_immediately(store.settle(queue, [outcome]))
