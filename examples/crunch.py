"""Work for the processor: handlers in processes of their own, with progress, a timeout and a cancel that kills."""

from __future__ import annotations

import asyncio

from ropeway import JobFailed, ProcessJob, Queue, Worker, in_process


def count_primes(job: ProcessJob) -> int:
    below, found = job.data["below"], 0
    for number in range(2, below):
        if number % max(1, below // 4) == 0:
            job.progress(round(100 * number / below))
        found += all(number % divisor for divisor in range(2, int(number**0.5) + 1))
    return found


HANDLERS = {"count_primes": in_process(count_primes)}


async def main() -> None:
    async with Queue("crunching", "memory://") as queue, Worker(queue, HANDLERS, concurrency=2):
        small = await queue.add("count_primes", {"below": 20_000})
        endless = await queue.add("count_primes", {"below": 10**12}, timeout=2)
        print("primes:", await small.result(timeout=60))
        try:
            await endless.result(timeout=60)
        except JobFailed as failed:
            print(failed.reason)


if __name__ == "__main__":
    asyncio.run(main())
