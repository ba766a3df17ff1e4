"""Transactions that a store shares with its callers: an optional feature, beside the contract.

The type of a transaction is known to the store alone: here it is any object that a caller was given or passes in.
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
    """Operations inside one transaction; other connections see their effects after the commit."""

    async def begin(self) -> Any:
        """Begins the transaction, and answers the object for the caller's own statements.

        A connection of the caller's is refused when it is in a transaction that `commit` could not end.
        """
        ...

    async def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        """Adds all of the bundle or nothing, as `Store.add`; needs no `begin`, and changes nothing else."""
        ...

    async def settle(self, queue: str, outcome: Outcome) -> Answer:
        """Settles a job. Call it last: until the commit, other calls that concern the job wait."""
        ...

    async def commit(self) -> None: ...

    async def roll_back(self) -> None: ...


class BlockingInside(Protocol):
    """`Inside` for a thread without an event loop: its calls block."""

    def begin(self) -> Any: ...

    def add(self, bundle: Sequence[NewJob]) -> list[Added]: ...

    def settle(self, queue: str, outcome: Outcome) -> Answer: ...

    def commit(self) -> None: ...

    def roll_back(self) -> None:
        """Ends the transaction, even if a signal interrupted `begin` or this call; does nothing if there is none."""
        ...


class SharesTransactions(Protocol):
    """A store that can add and settle jobs in its callers' transactions."""

    async def prepare(self, queue: str) -> None:
        """Creates, outside the transaction, rows that it needs and others would wait for. Call it before an add."""
        ...

    def own(self) -> Inside:
        """A transaction that the store opens, also for its caller's statements."""
        ...

    def own_blocking(self) -> BlockingInside: ...

    def join(self, tx: object) -> Inside:
        """A transaction of the caller's connection, or one made by `own`; `InvalidOption` if it cannot be joined."""
        ...

    def join_blocking(self, tx: object) -> BlockingInside: ...


def sharing(store: Store) -> SharesTransactions:
    """The store's `transactions` offer; raises if it has none."""
    if (offered := store.offers.transactions) is None:
        raise NoTransactions(store.url)
    return offered
