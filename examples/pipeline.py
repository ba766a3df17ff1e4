"""A pipeline: documents are read, split and embedded, each step in a queue of its own.

One job per document leads it through the steps and waits for each. The ids of the steps follow from the document's,
so a leader that is run again, after a crash say, finds the steps that were done and goes on from there.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import AsyncExitStack
from typing import Any

from ropeway import Job, Queue, SyncJob, Worker, connect

store = connect()  # ropeway.db, or $ROPEWAY_URL
documents = Queue("documents", store=store, attempts=3)
reading = Queue("reading", store=store, attempts=5, backoff="2 seconds")
embedding = Queue("embedding", store=store, attempts=3, timeout="1 minute")

LIBRARY = {"tides": "The moon pulls. The sea follows. Ships wait.", "wind": "Warm air rises. Cold air comes."}


async def ingest(job: Job) -> dict[str, Any]:
    """Leads one document through the steps."""
    read = await reading.add("read", job.data, id=f"{job.id}:read")
    sentences = (await read.result()).split(". ")
    await job.progress(20)

    steps = await embedding.add_many(
        [("embed", sentence, {"id": f"{job.id}:embed-{number}"}) for number, sentence in enumerate(sentences)]
    )
    vectors = []
    for number, step in enumerate(steps, 1):
        vectors.append(await step.result())
        await job.progress(20 + 80 * number // len(steps))
    return {"title": job.data["title"], "vectors": len(vectors)}


async def read(job: Job) -> str:
    await asyncio.sleep(0.02)  # a network
    return LIBRARY[job.data["title"]]


def embed(job: SyncJob) -> list[float]:
    """A `def`, so it runs in a thread: models block."""
    return [byte / 255 for byte in hashlib.sha256(job.data.encode()).digest()[:4]]


async def narrate() -> None:
    async for event in documents.events():
        told = event.data.get("result", event.data.get("progress", ""))
        print(f"{event.name:<10} {event.job_id or '':<10} {told}".rstrip(), flush=True)


async def main() -> None:
    async with AsyncExitStack() as stack:
        await store.open()
        stack.push_async_callback(store.close)
        # The model serves four at once, however many workers there are.
        await embedding.set_global_concurrency(4)
        # Leaders wait for steps: in a worker of their own they cannot take the places that the steps need.
        await stack.enter_async_context(Worker(documents, {"ingest": ingest}, concurrency=10))
        steps = Worker([reading, embedding], {"read": read, "embed": embed}, concurrency=10)
        await stack.enter_async_context(steps)

        narrator = asyncio.create_task(narrate())
        jobs = await documents.add_many([("ingest", {"title": title}, {"id": title}) for title in LIBRARY])
        print("done:", [await job.result() for job in jobs])
        narrator.cancel()


if __name__ == "__main__":
    asyncio.run(main())
