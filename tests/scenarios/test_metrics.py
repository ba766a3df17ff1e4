"""Numbers for Prometheus while workers are killed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ropeway import Queue
from ropeway.metrics import Exporter
from tests.metrics.parsing import Samples, parsed
from tests.patience import PATIENCE

from .chronicle import Chronicle
from .harness import AppProcess, Fleet, Gate, until


@pytest.mark.every_store
async def test_metrics_agree_with_the_store_after_kills(queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate):
    exporter = Exporter(queue)
    pages: list[Samples] = []

    async def look() -> Samples:
        pages.append(parsed(await exporter.text()))
        return pages[-1]

    held = await queue.add("hold", str(gate))
    for _ in range(2):
        worker = fleet.start(concurrency=4, lock_duration=0.5, max_stalled_count=5)
        others = await queue.add_many([("nap", 0.001) for _ in range(20)])
        await _runs(worker, held.id)
        await look()
        for job in others:
            await job.result(timeout=PATIENCE)
        worker.kill()
    gate.open()
    last = fleet.start(concurrency=4, lock_duration=0.5, max_stalled_count=5)
    await held.result(timeout=PATIENCE)
    last.terminate()
    await last.exit()

    final, name = await look(), queue.name

    assert final["ropeway_jobs_added_total", name] == 41
    assert final["ropeway_jobs_completed_total", name] == final["ropeway_jobs", name, "completed"] == 41
    assert final["ropeway_jobs_stalled_total", name] == len(await chronicle.ids("stall"))
    assert final["ropeway_jobs_stalled_total", name] >= 2
    # Those that were killed took the timings of their last seconds with them.
    assert 1 <= final["ropeway_job_run_seconds_count", name] <= 41
    for before, after in pairwise(pages):
        for key in before:
            if key[0].endswith(("_total", "_bucket", "_count", "_sum")):
                assert after[key] >= before[key], key


async def _runs(worker: AppProcess, job_id: str) -> None:
    await until(lambda: job_id in worker.running(), "the start of the held job")
