"""A flow: photos are fetched and resized, and an album is made of them once all are done.

One of them cannot be fetched. The album is made of the others, because it ignores that failure.
"""

from __future__ import annotations

import asyncio

from ropeway import Job, Queue, Worker, connect, result_of, results_of

store = connect("memory://")
photos, albums = Queue("photos", store=store), Queue("albums", store=store)


@photos.task
async def fetch(name: str) -> str:
    if name == "fog":
        raise FileNotFoundError(f"no photo named {name}")
    return f"{name}.png"


@photos.task
async def resize(width: int, photo: str = result_of(fetch)) -> str:
    return f"{width}-{photo}"


@albums.task
async def album(job: Job, title: str, pages: list[str] = results_of(resize)) -> str:
    missing = len(await job.children_failures())
    return f"{title}: {', '.join(pages)} ({missing} missing)"


async def main() -> None:
    async with albums, Worker([photos, albums]):
        pages = [resize.call(800).after(fetch.call(name)) for name in ("sea", "fog", "sky")]
        job = await album.call("Holiday").after(*pages, on_child_failure="ignore").add()
        print(await job.result(timeout=60))
        for node in (await albums.flow(job.id)).walk():
            print(f"{node.name:<8} {node.state:<10} {node.reason or ''}".rstrip())


if __name__ == "__main__":
    asyncio.run(main())
