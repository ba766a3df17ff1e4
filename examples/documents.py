"""Documents are read and embedded: one job per document gathers the others, which are in queues of their own.

It gives its slot back while it waits, and begins again when all have ended. What it gathered before then answers at
once, also if the worker was killed in between.
"""

from __future__ import annotations

import asyncio
import hashlib

from ropeway import Job, Queue, Worker, connect

store = connect()  # ropeway.db, or $ROPEWAY_URL
documents = Queue("documents", store=store, attempts=3)
reading = Queue("reading", store=store, attempts=5, backoff="2 seconds")
embedding = Queue("embedding", store=store, attempts=3, timeout="1 minute")

LIBRARY = {"tides": "The moon pulls. The sea follows. Ships wait.", "wind": "Warm air rises. Cold air comes."}


@reading.task
async def read(title: str) -> str:
    await asyncio.sleep(0.02)  # a network
    return LIBRARY[title]


@embedding.task
def embed(sentence: str) -> list[float]:
    """A `def`, so it runs in a thread: models block."""
    return [byte / 255 for byte in hashlib.sha256(sentence.encode()).digest()[:4]]


@documents.task
async def ingest(job: Job, title: str) -> dict[str, object]:
    [text] = await job.gather(read.call(title))
    await job.progress(20)
    vectors = await job.gather(*(embed.call(sentence) for sentence in text.split(". ")))
    return {"title": title, "vectors": len(vectors)}


async def narrate() -> None:
    async for event in documents.events():
        said = event.data.get("result", event.data.get("progress", ""))
        print(f"{event.name:<16} {event.job_id or '':<10} {said}".rstrip(), flush=True)


async def main() -> None:
    async with documents, reading, embedding:
        # The model serves four at once, however many workers there are.
        await embedding.set_global_concurrency(4)
        narrator = asyncio.create_task(narrate())
        async with Worker([documents, reading, embedding], concurrency=10):
            jobs = await documents.add_many([ingest.using(id=title).call(title) for title in LIBRARY])
            print("done:", [await job.result() for job in jobs])
        narrator.cancel()


if __name__ == "__main__":
    asyncio.run(main())
