"""How many jobs of a priority wait, found in the lines in which they stand."""

from __future__ import annotations

import re

from ropeway.job.numbers import LEAST_URGENT, MOST_URGENT
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add
from ropeway.testing.factories import QUEUE, new_job
from tests.stores.servers import ServerProcess

from .conftest import OpenStore, StartServer


def calls_of(server: ServerProcess, command: str) -> int:
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", server.ask("INFO", "commandstats").decode())
    return int(found[1]) if found else 0


async def test_priorities_that_no_job_can_have(store: RedisStore):
    await add(store, new_job(priority=MOST_URGENT), new_job(priority=LEAST_URGENT))
    beyond = [MOST_URGENT - 1, LEAST_URGENT + 1, 2**23 - 1, 2**24, -(2**23), -(2**23) - 1, 2**62, 10**30, -(10**30)]

    assert await store.count_waiting(QUEUE, beyond) == [0] * len(beyond)


async def test_one_that_is_asked_for_twice_is_answered_twice(store: RedisStore):
    await add(store, new_job(priority=3), new_job(priority=4))

    assert await store.count_waiting(QUEUE, [3, 4, 3]) == [1, 1, 1]


async def test_many_priorities_of_many_names(store: RedisStore):
    await add(store, *(new_job(name=f"name-{n % 7}", priority=n % 50 - 25) for n in range(400)))

    assert await store.count_waiting(QUEUE, range(-30, 30)) == [0] * 5 + [8] * 50 + [0] * 5


async def test_neither_many_priorities_in_line_nor_many_asked_for_make_it_long(
    start_server: StartServer, open_store: OpenStore
):
    server = start_server()
    store = open_store(server.url())
    await add(store, *(new_job(priority=priority) for priority in range(500)))

    assert await store.count_waiting(QUEUE, [3, 400, 499]) == [1, 1, 1]
    assert (calls_of(server, "zlexcount"), calls_of(server, "zrangebylex")) == (3, 2)

    assert sum(await store.count_waiting(QUEUE, range(497, 2_000))) == 3
    assert (calls_of(server, "zlexcount"), calls_of(server, "zrangebylex")) == (6, 5)
