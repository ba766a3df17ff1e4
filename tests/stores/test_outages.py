"""What a producer is told of an add when its server goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from ropeway import Queue
from ropeway.client.adds import PAUSE_BEFORE_REPEAT
from ropeway.errors import NotConnected, StoreError, StoreUnavailable
from ropeway.store import tries as trying
from ropeway.stores.postgres import pool as postgres
from ropeway.stores.redis import blocking as redis_blocking
from ropeway.stores.redis import connection as redis
from ropeway.stores.remote import connections as remote

from .conftest import AnyServer
from .network import Proxy
from .waiting import until

Add: TypeAlias = Callable[[Queue], Coroutine[Any, Any, Any]]

ADDS: dict[str, Add] = {
    "async": lambda queue: queue.add("send"),
    "sync": lambda queue: asyncio.to_thread(queue.sync.add, "send"),
}


@pytest.fixture(params=ADDS)
def add(request: pytest.FixtureRequest) -> Add:
    return ADDS[request.param]


@pytest.fixture
async def queue(proxy: Proxy) -> AsyncIterator[Queue]:
    async with Queue("letters", proxy.url()) as queue:
        yield queue


@pytest.fixture
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    for store in (redis, redis_blocking, postgres, remote):
        monkeypatch.setattr(store, "PATIENCE", 0.05)


@pytest.mark.usefixtures("impatience")
async def test_an_add_that_may_be_stored_says_so_although_its_repeat_found_no_server(
    queue: Queue, proxy: Proxy, server: AnyServer, add: Add
):
    for _ in range(3):
        await add(queue)
    proxy.swallow_answers()
    adding = asyncio.create_task(add(queue))
    async with Queue("letters", server.url()) as there:
        await until(lambda: _has(there, 4))
    await proxy.stop()

    with pytest.raises(StoreUnavailable, match="whether the call took effect is unknown") as raised:
        await adding
    assert raised.type is StoreUnavailable


async def _has(queue: Queue, jobs: int) -> bool:
    return (await queue.counts())["waiting"] == jobs


@pytest.mark.usefixtures("impatience")
async def test_an_add_that_was_never_sent_says_so(queue: Queue, proxy: Proxy, add: Add):
    await add(queue)
    await proxy.stop()

    with pytest.raises(StoreUnavailable) as raised:
        await _add_until_it_was_not_sent(queue, add)
    assert raised.type is NotConnected
    assert "unknown" not in str(raised.value)
    proxy.start()


async def _add_until_it_was_not_sent(queue: Queue, add: Add) -> None:
    """The first call may meet a connection whose end nobody has noticed yet."""
    try:
        await add(queue)
    except NotConnected:
        raise
    except StoreError:
        await add(queue)


def test_a_producer_whose_call_was_cut_off_hears_within_5_seconds():
    assert PAUSE_BEFORE_REPEAT + trying.PATIENCE + trying.LAST_TRY < 5
    assert PAUSE_BEFORE_REPEAT + postgres.LATEST < 5


def test_a_late_try_to_connect_has_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch):
    now = 100.0
    monkeypatch.setattr("ropeway.store.tries.time.monotonic", lambda: now)
    tries = trying.Tries(trying.PATIENCE)
    pauses = tries.pauses()
    assert tries.patience() == trying.CONNECTING
    now += trying.PATIENCE
    assert tries.patience() == pytest.approx(trying.LAST_TRY)
    assert next(pauses, None) is None
    assert trying.Tries(0).patience() == pytest.approx(trying.CONNECTING)


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
async def test_nobody_waits_longer_for_a_connection_because_a_slow_network_is_given_more_time(
    queue: Queue, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
):
    await queue.add("send")
    monkeypatch.setattr(postgres, "LATEST", 0.05)
    proxy.fall_silent()
    proxy.cut()

    with pytest.raises(NotConnected, match=r"no answer within 0\.05 s"):
        await _add_until_it_was_not_sent(queue, ADDS["async"])
    proxy.heal()
    proxy.cut()
    monkeypatch.undo()
    await queue.add("send")
