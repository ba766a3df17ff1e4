"""The worst day: workers are killed and stopped all the time, and no job is lost or done twice.

Where the store is a server, that is killed too, and so is the network before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

import pytest

from ropeway import Queue
from ropeway.job.codec import decode
from tests.patience import PATIENCE
from tests.stores.databases import DatabaseProcess
from tests.stores.network import proxied
from tests.stores.places import empty_folder
from tests.stores.servers import ServerProcess

from .accidents import Accidents
from .chaos import Chaos, cause, reruns, runs_by_job
from .chronicle import Chronicle, all_jobs, check_counters
from .harness import Fleet, show, until

pytestmark = pytest.mark.every_store

JOBS: Final = 5_000
WORKERS: Final = 4
KILLS: Final = 20
STOPS: Final = 5
ACCIDENTS: Final = 2
"""Of each kind."""
LOCK: Final = 3.0
RECOVERY: Final = LOCK + 6
SEED: Final = 20

Strike: TypeAlias = Callable[[], Awaitable[None]]


@pytest.fixture
async def accidents(url: str) -> AsyncIterator[Accidents | None]:
    make = _SERVERS.get(url.partition(":")[0])
    if make is None:
        yield None
        return
    with empty_folder() as folder:
        folder.chmod(0o755)
        server = make(folder)
        server.start()
        try:
            async with proxied(server) as proxy:
                yield Accidents(server, proxy)
        finally:
            server.kill()


_SERVERS: Final[dict[str, Callable[[Path], ServerProcess | DatabaseProcess]]] = {
    "redis": lambda folder: ServerProcess(folder, "--appendonly", "yes", "--appendfsync", "always"),
    "postgresql": lambda folder: DatabaseProcess(folder, fsync="on", full_page_writes="on"),
}
"""Those that keep all that they have acknowledged."""


@pytest.fixture
async def queue(url: str, accidents: Accidents | None) -> AsyncIterator[Queue]:
    async with Queue("letters", accidents.url if accidents else url) as queue:
        yield queue


@pytest.fixture
def fleet(url: str, accidents: Accidents | None, queue: Queue, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(accidents.workers_url if accidents else url, queue.name, tmp_path)
    yield fleet
    fleet.close()


@pytest.mark.deep
async def test_no_job_is_lost_or_done_twice_when_workers_are_killed_and_stopped(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, accidents: Accidents | None
):
    random = Random(SEED)
    chaos = Chaos(fleet, queue, chronicle, random, concurrency=12, lock_duration=LOCK, max_stalled_count=1_000)
    added: list[str] = []
    async with _fed(queue, added, accidents.there if accidents else asyncio.Lock()):
        await chaos.begin(WORKERS)
        blows = [chaos.kill] * KILLS + [chaos.stop] * STOPS + (_accidents(chaos, accidents) if accidents else [])
        random.shuffle(blows)
        for strike in blows:
            await strike()
            await chronicle.read()
    await until(lambda: _all_completed(chronicle, len(added)), "the end of all jobs", timeout=PATIENCE)

    jobs = {job.id: job for job in await all_jobs(queue)}
    assert jobs.keys() == set(added)
    assert {job.state for job in jobs.values()} == {"completed"}
    assert set((await chronicle.read()).completions.values()) == {1}
    await check_counters(queue)

    last_run = {job_id: runs[-1] for job_id, runs in runs_by_job(fleet).items()}
    for job in jobs.values():
        assert job.token == decode(job.result or "null") == last_run[job.id].begun.token
        assert job.attempts_made == 0

    struck = [*chaos.kills, *chaos.stops, *(accidents.blows if accidents else [])]
    causes = [(first, second, cause(first, second, struck, LOCK)) for first, second in reruns(fleet)]
    assert [(first, second) for first, second, blow in causes if blow is None] == [], struck
    times = [second.begun.at - blow.at for _, second, blow in causes if blow is not None]
    assert max(times) < RECOVERY
    assert len(chaos.kills) == KILLS
    assert len(chaos.stops) == STOPS
    show("jobs", len(jobs))
    show("second runs", len(times))
    show("longest recovery", max(times), "s")
    show("refused outcomes", len(await chronicle.ids("lock-lost")))


def _accidents(chaos: Chaos, accidents: Accidents) -> list[Strike]:
    def then_recover(happen: Strike) -> Strike:
        async def strike() -> None:
            await happen()
            await chaos.recover()

        return strike

    kinds = [
        accidents.kill_server,
        accidents.cut_connections,
        accidents.lose_answers,
        accidents.delay_answers,
        accidents.fall_silent,
        accidents.refuse_connections,
    ]
    return [then_recover(happen) for happen in kinds * ACCIDENTS]


@asynccontextmanager
async def _fed(queue: Queue, added: list[str], there: asyncio.Lock) -> AsyncIterator[None]:
    """Keeps jobs waiting while the block runs; adds the rest of them at its end."""
    async with asyncio.TaskGroup() as group:
        feeding = group.create_task(_feed(queue, added, there))
        yield
        feeding.cancel()
    while len(added) < JOBS:
        await _add(queue, added)


async def _feed(queue: Queue, added: list[str], there: asyncio.Lock) -> None:
    while True:
        async with there:
            if (await queue.counts())["waiting"] < 400:
                await asyncio.shield(_add(queue, added))
        await asyncio.sleep(0.02)


async def _add(queue: Queue, added: list[str]) -> None:
    """Most take milliseconds; every fifth lasts, so that blows hit it."""
    naps = [0.5 if number % 5 == 0 else 0.005 for number in range(200)]
    jobs = await queue.add_many([("nap", seconds, {"remove_on_complete": False}) for seconds in naps])
    added += [job.id for job in jobs]


async def _all_completed(chronicle: Chronicle, number: int) -> bool:
    return await chronicle.completed() == number
