"""A producer process: adds bundles until it is killed, and writes down each that was acknowledged.

`python -m tests.scenarios.producer_app URL QUEUE DIARY NAME`
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count

from ropeway import Queue

from .diary import Diary

BUNDLE = 200


async def produce(url: str, queue_name: str, path: str, name: str) -> None:
    diary = Diary(path)
    async with Queue(queue_name, url) as queue:

        async def line_of_bundles(line: int) -> None:
            for number in count():
                bundle = f"{name}.{line}.{number}"
                await queue.add_many([("nap", 0, {"id": f"{bundle}.{item}"}) for item in range(BUNDLE)])
                diary.write("added", note=bundle)

        # Several at once, so that one trip carries bundles of several callers.
        await asyncio.gather(*map(line_of_bundles, range(4)))


if __name__ == "__main__":
    asyncio.run(produce(*sys.argv[1:]))
