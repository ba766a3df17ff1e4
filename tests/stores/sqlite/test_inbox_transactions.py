"""A user's own transactions and what lies in the inbox: in the order in which it was acknowledged."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ropeway.stores.sqlite import SQLiteStore
from ropeway.testing.factories import QUEUE, new_job

from . import processes
from .singly import add, ids

pytestmark = pytest.mark.usefixtures("never_by_itself")


async def test_a_transaction_of_a_users_own_comes_after_what_was_acknowledged(store: SQLiteStore):
    await add(store, "a")
    inside = store.own()
    await inside.begin()
    await inside.add([new_job("b")])
    await inside.commit()

    assert await ids(store) == ["a", "b"]


async def test_what_is_acknowledged_during_a_transaction_comes_before_what_is_added_then(store: SQLiteStore):
    inside = store.own()
    await inside.begin()
    await inside.add([new_job("a")])
    await _add_apart(store, "b")
    await inside.add([new_job("c")])
    await inside.commit()

    assert await ids(store) == ["a", "b", "c"]


async def test_a_transaction_right_after_a_fork_comes_after_what_was_acknowledged(store: SQLiteStore, path: Path):
    script = """
    store = new_store()
    asyncio.run(store.open())
    say("ready")
    input()
    store.add_blocking([[new_job("a", is_fresh=True)]])
    say("added")
    input()
    """
    with processes.start(script, path) as other:
        assert processes.line(other) == "ready"
        child = os.fork()
        if not child:
            os._exit(0)
        await asyncio.to_thread(os.waitpid, child, 0)
        processes.tell(other)
        assert processes.line(other) == "added"

        inside = store.own()
        await inside.begin()
        await inside.add([new_job("b")])
        await inside.commit()

        assert await ids(store) == ["a", "b"]
        other.kill()


async def test_what_was_acknowledged_before_a_transaction_is_found_inside_it(store: SQLiteStore):
    await add(store, "a")
    inside = store.own()
    await inside.begin()
    try:
        assert (await store.get(QUEUE, ["a"]))[0] is not None
    finally:
        await inside.roll_back()


async def test_a_transaction_that_is_rolled_back_takes_nothing_away(store: SQLiteStore):
    await add(store, "a")
    inside = store.own()
    await inside.begin()
    await inside.add([new_job("b")])
    await inside.roll_back()

    assert await ids(store) == ["a"]


async def test_one_can_look_around_inside_a_transaction(store: SQLiteStore):
    inside = store.own()
    await inside.begin()
    try:
        await asyncio.create_task(_add_apart(store, "a"))
        assert (await store.count(QUEUE))["waiting"] == 0
    finally:
        await inside.roll_back()
    assert (await store.count(QUEUE))["waiting"] == 1


async def _add_apart(store: SQLiteStore, id: str) -> None:
    """From a process that is in no transaction."""
    script = f"asyncio.run(new_store().add([[new_job({id!r}, is_fresh=True)]]))"
    await asyncio.to_thread(processes.run, script, store.url.removeprefix("sqlite:///"))
