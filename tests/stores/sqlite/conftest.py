"""A file of its own for each test, and handles that are closed when it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import pytest

from ropeway.stores.sqlite import SQLiteStore, ingest, opening
from ropeway.stores.sqlite.target import Target

NewStore: TypeAlias = Callable[..., SQLiteStore]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ropeway.db"


@pytest.fixture
def ring(path: Path) -> Path:
    """The file's inbox."""
    return Path(f"{path}-inbox")


@pytest.fixture
def never_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in an inbox stays there until somebody writes, or asks for it."""
    monkeypatch.setattr(ingest, "INGEST_AFTER", 1_000)


@pytest.fixture
async def new_store(path: Path) -> AsyncIterator[NewStore]:
    """Answers handles; takes the fields of `Target` that a test is about."""
    made: list[SQLiteStore] = []

    def new(**fields: Any) -> SQLiteStore:
        store = SQLiteStore(Target(str(path), f"sqlite:///{path}", **fields))
        made.append(store)
        return store

    yield new
    for store in made:
        await store.close()


@pytest.fixture
async def store(new_store: NewStore) -> SQLiteStore:
    store = new_store()
    await store.open()
    return store


@pytest.fixture
def sql(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that connections made from now on run."""
    said: list[str] = []

    def trace(_: object, statement: str, __: object) -> bool:
        said.append(statement.strip())
        return True

    def traced(connect: Any) -> Any:
        def connecting(*arguments: Any, **options: Any) -> apsw.Connection:
            connection: apsw.Connection = connect(*arguments, **options)
            connection.exec_trace = trace
            return connection

        return connecting

    monkeypatch.setattr("ropeway.stores.sqlite.shared.open_file", traced(opening.open_file))
    monkeypatch.setattr("ropeway.stores.sqlite.shared.connect", traced(opening.connect))
    return said
