"""Which handles see the same jobs, and for how long."""

from __future__ import annotations

import gc

import pytest

from ropeway.errors import InvalidOption, StoreClosed, StoreUnavailable
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.stores.memory import MemoryStore
from ropeway.testing.arrange import add, read
from ropeway.testing.factories import QUEUE, new_job


async def has_job(store: Store, id: str = "a") -> bool:
    return await store.get(QUEUE, [id]) != [None]


async def test_each_plain_url_is_a_store_of_its_own():
    one, other = connect("memory://"), connect("memory://")
    await add(one, new_job("a"))

    assert not await has_job(other)


async def test_handles_of_one_name_share_their_jobs():
    one, other, stranger = connect("memory://app"), connect("memory://app"), connect("memory://other")
    await add(one, new_job("a"))

    assert await has_job(other)
    assert not await has_job(stranger)


async def test_siblings_share_their_jobs():
    store = connect("memory://")
    await add(store, new_job("a"))

    assert await has_job(store.sibling())


async def test_a_store_outlives_the_handle_that_began_it():
    first, second = connect("memory://app"), connect("memory://app")
    await add(first, new_job("a"))
    await first.close()

    assert await has_job(second)
    assert await has_job(connect("memory://app"))
    assert (await read(second, "a")).state == "waiting"


async def test_the_last_close_forgets_the_jobs():
    first = connect("memory://app")
    second = first.sibling()
    await add(first, new_job("a"))
    await first.close()
    await second.close()

    assert not await has_job(connect("memory://app"))


async def test_a_handle_that_nobody_refers_to_keeps_nothing():
    forgotten = connect("memory://app")
    await add(forgotten, new_job("a"))
    del forgotten
    gc.collect()

    assert not await has_job(connect("memory://app"))


async def test_closing_twice_closes_nobody_elses_handle():
    first, second = connect("memory://app"), connect("memory://app")
    await first.close()
    await first.close()

    await add(second, new_job("a"))
    assert await has_job(connect("memory://app"))


async def test_a_closed_handle_has_no_siblings():
    store = connect("memory://")
    await store.close()

    with pytest.raises(StoreClosed):
        store.sibling()


@pytest.mark.parametrize(
    "url",
    [
        "memory:",
        "memory:app",
        "memory:/app",
        "memory:///app",
        "memory://app/",
        "memory://app/path",
        "memory://app?x=1",
        "memory://app#x",
        "memory://user@app",
        "memory://app:6379",
        "memory://-app",
        "memory://ä",
        "memory://app\n",
        "memory://" + "a" * 129,
        "sqlite://",
        "",
    ],
)
def test_other_urls_are_refused(url: str):
    with pytest.raises(InvalidOption, match="memory://name"):
        MemoryStore.from_url(url)


@pytest.mark.parametrize("url", ["memory://", "memory://nobody-made-it"])
def test_one_that_may_not_make_a_store_finds_none(url: str):
    with pytest.raises(StoreUnavailable, match="in this process"):
        connect(url, create=False)


async def test_one_that_may_not_make_a_store_finds_that_of_others():
    made = connect("memory://app")
    await add(made, new_job("a"))

    assert await has_job(connect("memory://app", create=False))


def test_the_url_says_which_store_it_is():
    assert connect("memory://app").url == "memory://app"


def test_it_keeps_the_contract_in_the_eyes_of_the_type_checker():
    store: Store = MemoryStore.from_url("memory://")

    assert store.url == "memory://"
