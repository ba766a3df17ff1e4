"""The clock of a file never runs backwards, whatever the machine's does."""

from __future__ import annotations

from pathlib import Path

import apsw

from ropeway.stores.sqlite import SQLiteStore
from ropeway.stores.sqlite.clock import Clock
from ropeway.testing.factories import DAY, QUEUE, claim_request, new_job

from .conftest import NewStore

SECOND = 1_000_000_000


class Times:
    wall = 1_000 * SECOND
    steady = 5 * SECOND


def clock(times: Times) -> Clock:
    return Clock(lambda: times.wall, lambda: times.steady)


def test_it_reads_the_wall_clock():
    assert clock(Times()).read() == 1_000_000


def test_it_goes_on_when_the_wall_clock_is_set_back():
    times = Times()
    reading = clock(times)
    reading.read()

    times.wall -= 500 * SECOND
    times.steady += 3 * SECOND

    assert reading.read() == 1_003_000


def test_it_follows_the_wall_clock_forwards():
    times = Times()
    reading = clock(times)
    reading.read()

    times.wall += 500 * SECOND

    assert reading.read() == 1_500_000


def test_it_goes_on_from_what_others_stored():
    times = Times()
    reading = clock(times)

    reading.saw(2_000_000)
    times.steady += 2 * SECOND

    assert reading.read() == 2_002_000


async def test_a_process_whose_clock_is_behind_goes_on_from_the_file(
    store: SQLiteStore, path: Path, new_store: NewStore
):
    """As if a process whose clock is a day ahead had written to the file."""
    await store.add([[new_job()]])
    other = apsw.Connection(str(path))
    other.execute("UPDATE queue SET at = at + ?", (DAY,))
    stored = other.execute("SELECT at FROM queue").get
    other.close()

    claimed = await store.claim(claim_request())

    assert claimed.now >= stored
    assert await store.clock() >= claimed.now
    await store.close()
    assert await new_store().clock() >= claimed.now


async def test_an_instant_that_a_test_gives_is_used_as_it_is(store: SQLiteStore):
    await store.add([[new_job()]], now=5_000_000)

    assert (await store.claim(claim_request(), now=1_000_000)).now == 1_000_000
    assert (await store.count(QUEUE))["active"] == 1
