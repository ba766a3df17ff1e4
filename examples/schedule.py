"""Schedules: a task that runs every second, and a daily report that is made ahead of its time.

Any worker of the queue makes the jobs. The heart beats three times; then the report is asked for by hand.
"""

from __future__ import annotations

import asyncio

from ropeway import Job, Queue, Worker

queue = Queue("office", "memory://")


@queue.task(every="1 second", overlap="skip")
async def heartbeat(job: Job) -> str:
    return f"beat of {job.schedule}"


@queue.task
async def report(kind: str = "daily") -> str:
    return f"the {kind} report"


async def main() -> None:
    async with queue:
        daily = await queue.schedule("daily", "report", {"kind": "daily"}, cron="0 9 * * *", tz="America/New_York")
        print(f"{daily.id}: {daily.description}")
        async with Worker(queue):
            beats = 0
            async for event in queue.events(after="start"):
                if event.name == "completed":
                    print(event.data["result"])
                    beats += 1
                if beats == 3:
                    break
            job = await queue.schedules.run("daily")
            print(await job.result(timeout=60))
        for schedule in await queue.schedules.list():
            print(f"{schedule.id} made {len(schedule.history)} jobs, and is next due at {schedule.next_at}")


if __name__ == "__main__":
    asyncio.run(main())
