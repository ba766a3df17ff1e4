"""An import of a large file that survives `kill -9` in the middle.

`python -m examples.big_import` adds an import and starts a worker, kills that half way, and starts another, which goes
on where the first one stopped: finished phases and steps are not run again.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ropeway import Job, Phase, PhaseContext, Pipeline, Queue, Worker

ROWS, PORTION = 200_000, 20_000

queue = Queue("imports")


async def download(job: Job, ctx: PhaseContext) -> dict[str, int]:
    say("downloads the file")
    await asyncio.to_thread(write_rows, Path(job.data["file"]))
    return {"rows": ROWS}


async def process(job: Job, ctx: PhaseContext) -> int:
    rows = ctx.phase_result("download")["rows"]
    if ctx.last_progress is not None:
        say(f"goes on at {ctx.last_progress:g} %")
    total = 0
    for first in range(0, rows, PORTION):
        total += await job.step(f"rows-{first}", add_up, job.data["file"], first)
        await ctx.progress(100 * (first + PORTION) / rows)
    return total


async def report(job: Job, ctx: PhaseContext) -> dict[str, Any]:
    say("reports")
    return {"rows": ctx.phase_result("download")["rows"], "total": ctx.phase_result("process")}


imports = queue.task(
    Pipeline([Phase("download", download), Phase("process", process, attempts=3), Phase("report", report)]),
    name="import",
)


def write_rows(file: Path) -> None:
    with file.open("w") as rows:
        rows.writelines(f"row {number},{number}\n" for number in range(ROWS))


def add_up(file: str, first: int) -> int:
    """One step: its result is stored, and no later attempt runs it again."""
    say(f"adds up rows {first:,} to {first + PORTION - 1:,}")
    time.sleep(0.1)
    with Path(file).open() as rows:
        return sum(int(row.split(",")[1]) for number, row in enumerate(rows) if first <= number < first + PORTION)


def say(what: str) -> None:
    print(f"worker {os.getpid()} {what}", flush=True)


async def work() -> None:
    # A killed worker's job is taken over when its lock has run out; 30 seconds are the default.
    await Worker(queue, lock_duration=3, stalled_interval=0.5).run()


def start_worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "examples.big_import", "work"])


async def main() -> None:
    async with queue:
        job = await imports.add({"file": f"rows-{os.getpid()}.csv"})
        worker = start_worker()
        async for event in queue.events("start"):
            if event.job_id == job.id and event.name == "progress" and event.data["progress"] >= 50:
                break
        worker.kill()
        worker.wait()
        print(f"worker {worker.pid} was killed by kill -9")
        worker = start_worker()
        print("the result is", await job.result(timeout=60))
        for phase in (await job.refresh()).phases:
            print(f"{phase.name}: {phase.state}")
        worker.terminate()
        worker.wait()
        await asyncio.to_thread(os.unlink, job.data["file"])


if __name__ == "__main__":
    asyncio.run(work() if sys.argv[1:] == ["work"] else main())
