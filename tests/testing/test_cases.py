"""Cases that share a store: each begins on an empty one, is audited, and is named when it fails."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator

import pytest

from ropeway.store.url import connect
from ropeway.testing.arrange import add_one, read
from ropeway.testing.auditor import AuditedStore
from ropeway.testing.conformance.cases import for_each


@pytest.fixture
async def store() -> AsyncIterator[AuditedStore]:
    store = AuditedStore(connect("memory://"))
    yield store
    await store.close()


async def test_every_case_begins_on_an_empty_store(store: AuditedStore):
    seen = []

    @for_each("id", ["a", "b", "a"])
    async def adds(store: AuditedStore, id: str) -> None:
        assert await store.queues() == []
        assert not store.audit_log.ledgers
        await add_one(store, id=id)
        seen.append(id)

    await adds(store)

    assert seen == ["a", "b", "a"]


async def test_a_failure_names_its_case(store: AuditedStore):
    @for_each(("id", "other"), [("a", "a"), ("b", "c")])
    async def finds(store: AuditedStore, id: str, other: str) -> None:
        await add_one(store, id=id)
        await read(store, other)

    with pytest.raises(AssertionError) as failed:
        await finds(store)

    assert failed.value.__notes__ == ["in the case ('b', 'c') of id, other"]


async def test_what_breaks_the_contract_fails_in_its_case(store: AuditedStore):
    @for_each("is_wrong", [True, False], ids=["wrong", "right"])
    async def breaks(store: AuditedStore, is_wrong: bool) -> None:
        if is_wrong:
            store.audit_log.problems.append("it forgot a job")

    with pytest.raises(AssertionError, match="it forgot a job") as failed:
        await breaks(store)

    assert failed.value.__notes__ == ["in the case wrong of is_wrong"]


async def test_cases_of_cases_are_all_combinations(store: AuditedStore):
    seen = []

    @for_each("first", [1, 2])
    @for_each("second", [3, 4])
    async def notes(store: AuditedStore, first: int, second: int) -> None:
        seen.append((first, second))

    await notes(store)

    assert seen == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert [*inspect.signature(notes).parameters] == ["store"]


def test_no_case_and_an_unknown_name_are_refused():
    async def checks(store: AuditedStore, id: str) -> None:
        raise NotImplementedError

    with pytest.raises(AssertionError, match="checks has no case"):
        for_each("id", [])(checks)
    with pytest.raises(AssertionError, match=r"checks does not take .*name"):
        for_each("name", ["a"])(checks)
