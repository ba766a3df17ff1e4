"""Producers that are killed while they add."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ropeway import Queue

from .chronicle import all_jobs, check_counters
from .harness import AppProcess, Fleet, until
from .producer_app import BUNDLE

pytestmark = pytest.mark.every_store


@pytest.mark.parametrize("producers", [6, pytest.param(20, marks=pytest.mark.deep)])
async def test_a_bundle_of_a_killed_producer_is_there_whole_or_not_at_all(queue: Queue, fleet: Fleet, producers: int):
    random = Random(8)
    acknowledged: set[str] = set()
    for number in range(producers):
        producer = fleet.start_producer(f"p{number}")
        await _has_added(producer, random.randrange(1, 12))
        producer.kill()
        acknowledged |= {line.note for line in producer.wrote("added")}

    bundles = Counter(job.id.rpartition(".")[0] for job in await all_jobs(queue))
    assert set(bundles.values()) == {BUNDLE}
    assert acknowledged <= bundles.keys()
    await check_counters(queue)


async def _has_added(producer: AppProcess, bundles: int) -> None:
    await until(lambda: len(producer.wrote("added")) >= bundles, f"{bundles} bundles")
