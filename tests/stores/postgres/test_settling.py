"""Outcomes: in the order given, and with the jobs that they add."""

from __future__ import annotations

from msgspec.structs import replace

from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import active, add, claim, is_gone, read
from ropeway.testing.factories import NOW, QUEUE, complete, new_job, retry


async def test_jobs_that_are_retried_at_once_wait_in_the_order_of_their_outcomes(store: PostgresStore):
    await add(store, new_job("a"), new_job("b"))
    first, second = await claim(store, 2)

    await store.settle(QUEUE, [retry(second), retry(first)], now=NOW)

    assert [job.id for job in await claim(store, 2)] == ["b", "a"]


async def test_a_completion_in_a_transaction_adds_its_jobs_with_the_commit(store: PostgresStore):
    held = await active(store)
    await store.prepare(QUEUE)
    inside = store.own()
    await inside.begin()
    answer = await inside.settle(QUEUE, replace(complete(held), adds=(new_job("next", tags=("x",)),)))
    assert answer.verdict == "done"
    assert await is_gone(store, "next")

    await inside.commit()

    assert (await read(store, "next")).tags == ("x",)
