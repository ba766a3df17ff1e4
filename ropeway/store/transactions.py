"""Transactions that a store shares with its callers: an extra that some stores offer beside the contract.

What connections are, only those stores know: here a transaction is whatever its caller was given, or brings along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import NoTransactions
from ..job.outcomes import Outcome
from ..job.record import NewJob
from .values import Added, Answer

if TYPE_CHECKING:
    from .contract import Store


class Inside(Protocol):
    """What can be done inside of one transaction. What it does, nobody else sees before the commit."""

    async def begin(self) -> Any:
        """Begins what `commit` ends, and answers what the caller's own statements go to.

        A connection of the caller's is refused when it is in a transaction that `commit` could not end.
        """
        ...

    async def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        """All of the bundle or nothing, as `Store.add` says it; needs no `begin`, and leaves the rest as it is."""
        ...

    async def settle(self, queue: str, outcome: Outcome) -> Answer:
        """Do it last: until the commit, whoever else has to do with the job waits."""
        ...

    async def commit(self) -> None: ...

    async def roll_back(self) -> None: ...


class InsideHere(Protocol):
    """The same for a thread that has no event loop, and waits."""

    def begin(self) -> Any: ...

    def add(self, bundle: Sequence[NewJob]) -> list[Added]: ...

    def settle(self, queue: str, outcome: Outcome) -> Answer: ...

    def commit(self) -> None: ...

    def roll_back(self) -> None:
        """Ends what `begin` began, also if a signal broke that off, or this; does nothing if there is nothing."""
        ...


class SharesTransactions(Protocol):
    async def prepare(self, queue: str) -> None:
        """Makes what a rollback must not take back, and what others must not wait for. Call it before an add."""
        ...

    def own(self) -> Inside:
        """A transaction of the store's own making, for its caller's statements too."""
        ...

    def own_here(self) -> InsideHere: ...

    def join(self, tx: object) -> Inside:
        """One that somebody else makes, or that `own` made; raises `InvalidOption` if the store cannot join it."""
        ...

    def join_here(self, tx: object) -> InsideHere: ...


def sharing(store: Store) -> SharesTransactions:
    """The store, if it shares its transactions."""
    if (offered := store.offers.transactions) is None:
        raise NoTransactions(store.url)
    return offered
