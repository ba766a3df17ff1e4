"""Processing by hand: claim jobs, renew their locks and settle them yourself, without a running worker."""

from __future__ import annotations

import asyncio

from ropeway import LockLost, Queue, Worker


async def main() -> None:
    async with Queue("letters", "memory://") as queue:
        await queue.add_many([("print", {"page": number}) for number in range(3)])
        worker = Worker(queue, lock_duration="10 seconds")

        [first] = await worker.claim()
        await first.renew()
        await first.complete({"printed": first.data["page"]})

        [second] = await worker.claim()
        await second.fail("out of paper")

        [third] = await worker.claim(wait="1 second")
        await queue.cancel(third.id)
        try:
            await third.complete()
        except LockLost as refused:
            print("refused:", refused)

        print({state: number for state, number in (await queue.counts()).items() if number})


if __name__ == "__main__":
    asyncio.run(main())
