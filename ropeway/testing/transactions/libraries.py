"""Connections and sessions of other libraries, each with its way to be notified of a commit.

They are known by their names, so that nobody needs a library that he does not use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from ...errors import InvalidOption
from ...showing import shown, with_article
from .pending_adds import PendingAdd

TAKEN: Final = (
    "give a Session, Connection, AsyncSession or AsyncConnection of SQLAlchemy, Django's connection, or what "
    "`queue.transaction()` gives"
)


class Transactional(Protocol):
    """One connection or session. `begin`, `commit` and `roll_back` may return awaitables."""

    def pending(self) -> list[PendingAdd]:
        """Adds of the open transaction that were not rolled back."""
        ...

    def on_commit(self, pending_add: PendingAdd) -> None: ...

    def begin(self) -> Any: ...

    def commit(self) -> Any: ...

    def roll_back(self) -> Any: ...


class OfSession:
    """SQLAlchemy's sessions, which have events for each committed transaction and savepoint."""

    def __init__(self, given: Any) -> None:
        self._given = given
        session = given.registry() if hasattr(given, "registry") else given
        self._session = getattr(session, "sync_session", session)

    def pending(self) -> list[PendingAdd]:
        watch = _sessions.get(self._session)
        return [] if watch is None else watch.pending()

    def on_commit(self, pending_add: PendingAdd) -> None:
        if not self._session.in_transaction():
            # As the first statement of a transaction does.
            self._session.begin()
        if self._session not in _sessions:
            _sessions[self._session] = SessionWatch(self._session)
        _sessions[self._session].add(self._session, pending_add)

    def begin(self) -> None:
        """It begins by itself."""

    def commit(self) -> Any:
        return self._given.commit()

    def roll_back(self) -> Any:
        return self._given.rollback()


class SessionWatch:
    def __init__(self, session: Any) -> None:
        self._levels: dict[Any, list[PendingAdd]] = {}
        listen = import_module("sqlalchemy.event").listen
        listen(session, "after_commit", self._committed)
        listen(session, "after_transaction_end", self._ended)

    def pending(self) -> list[PendingAdd]:
        return [pending_add for level in self._levels.values() for pending_add in level]

    def add(self, session: Any, pending_add: PendingAdd) -> None:
        self._levels.setdefault(_innermost(session), []).append(pending_add)

    def _committed(self, session: Any) -> None:
        level = _innermost(session)
        landings = self._levels.pop(level, [])
        if level.parent is not None:
            self._levels.setdefault(level.parent, []).extend(landings)
            return
        for pending_add in landings:
            pending_add()

    def _ended(self, _: Any, level: Any) -> None:
        # Rolled back, or closed: committed adds are no longer in the list.
        self._levels.pop(level, None)


class OfConnection:
    """SQLAlchemy's connections, which have an event just before a commit."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self._connection = getattr(given, "sync_connection", None) or given

    def pending(self) -> list[PendingAdd]:
        watch = _connections.get(self._connection)
        return [] if watch is None else watch.landings

    def on_commit(self, pending_add: PendingAdd) -> None:
        if not self._connection.in_transaction():
            self._connection.begin()
        if self._connection not in _connections:
            _connections[self._connection] = ConnectionWatch(self._connection)
        _connections[self._connection].landings.append(pending_add)

    def begin(self) -> None:
        """It begins by itself."""

    def commit(self) -> Any:
        return self._given.commit()

    def roll_back(self) -> Any:
        return self._given.rollback()


class ConnectionWatch:
    def __init__(self, connection: Any) -> None:
        self.landings: list[PendingAdd] = []
        self._savepoints: list[int] = []
        """For each open savepoint, outermost first: the number of adds before it."""
        listen = import_module("sqlalchemy.event").listen
        listen(connection, "commit", self._committed)
        listen(connection, "rollback", lambda _: self.landings.clear())
        listen(connection, "savepoint", lambda *_: self._savepoints.append(len(self.landings)))
        listen(connection, "release_savepoint", lambda *_: self._savepoints.pop())
        listen(connection, "rollback_savepoint", lambda *_: self._take_back())

    def _committed(self, _: Any) -> None:
        landings, self.landings = self.landings, []
        for pending_add in landings:
            pending_add()

    def _take_back(self) -> None:
        del self.landings[self._savepoints.pop() :]


class OfDjango:
    """Django's connection, by `on_commit`."""

    def __init__(self, given: Any) -> None:
        # The one behind `django.db.connection`, of this thread.
        self._connection = import_module("django.db").connections[given.alias]
        self._atomic: Any = None

    def pending(self) -> list[PendingAdd]:
        functions = [function for _, function, *_ in self._connection.run_on_commit]
        return [function for function in functions if isinstance(function, PendingAdd)]

    def on_commit(self, pending_add: PendingAdd) -> None:
        self._connection.on_commit(pending_add)

    def begin(self) -> None:
        if self._connection.in_atomic_block:
            raise InvalidOption(
                "using", "is in a transaction already, which this block could not commit: begin none, the block does"
            )
        self._atomic = import_module("django.db.transaction").atomic(using=self._connection.alias)
        self._atomic.__enter__()

    def commit(self) -> None:
        self._atomic.__exit__(None, None, None)

    def roll_back(self) -> None:
        if self._connection.in_atomic_block:
            self._connection.set_rollback(True)
            self._atomic.__exit__(None, None, None)


_sessions: Final[WeakKeyDictionary[Any, SessionWatch]] = WeakKeyDictionary()
_connections: Final[WeakKeyDictionary[Any, ConnectionWatch]] = WeakKeyDictionary()
_AWAITED: Final[Mapping[str, Callable[[Any], Transactional]]] = {
    "sqlalchemy.AsyncSession": OfSession,
    "sqlalchemy.async_scoped_session": OfSession,
    "sqlalchemy.AsyncConnection": OfConnection,
}
_WAITED_FOR: Final[Mapping[str, Callable[[Any], Transactional]]] = {
    "sqlalchemy.Session": OfSession,
    "sqlalchemy.scoped_session": OfSession,
    "sqlalchemy.Connection": OfConnection,
    "django.ConnectionProxy": OfDjango,
    "django.BaseDatabaseWrapper": OfDjango,
}
_SILENT: Final = ("psycopg", "asyncpg")


def transactional(given: object, *, awaited: bool) -> Transactional:
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(given).__mro__}
    mine, others = (_AWAITED, _WAITED_FOR) if awaited else (_WAITED_FOR, _AWAITED)
    for kind in kinds & mine.keys():
        return mine[kind](given)
    name = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"
    if kinds & others.keys():
        other = "queue.sync.add(...)` in a thread" if awaited else "await queue.add(...)`"
        raise InvalidOption("tx", f"is {with_article(name)}, which does not fit this call: use `{other}")
    if name.startswith(_SILENT):
        raise InvalidOption(
            "tx",
            f"is {with_article(name)}, which tells nobody of its commit: "
            "test what adds to it on a queue of the same database, Queue(name, url)",
        )
    raise InvalidOption("tx", f"cannot be {shown(given)}: {TAKEN}")


def _innermost(session: Any) -> Any:
    return session.get_nested_transaction() or session.get_transaction()
