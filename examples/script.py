"""A script without asyncio: it adds jobs, lets a worker in a thread run them, and waits for the results.

The worker could as well be a process of its own, or run on the next day.
"""

from __future__ import annotations

import time

from ropeway import JobFailed, Queue, SyncJob, Unrecoverable, Worker

queue = Queue("downloads", attempts=3, backoff=0.1)


def download(job: SyncJob) -> int:
    """A `def` handler runs in a thread of the worker: its calls wait, and need no await."""
    if "gone" in job.data:
        raise Unrecoverable("there is no such page")
    for percent in (25, 50, 75, 100):
        time.sleep(0.01)
        job.progress(percent)
    return len(job.data)


def main() -> None:
    worker = Worker(queue, {"download": download}, concurrency=4)
    with queue.sync as downloads, worker:
        pages = ["https://example.com/a", "https://example.com/b", "https://example.com/gone"]
        for job in downloads.add_many([("download", page) for page in pages]):
            try:
                print(job.data, job.result(timeout=30))
            except JobFailed as failed:
                print(job.data, failed.reason)
        print({state: number for state, number in downloads.counts().items() if number})


if __name__ == "__main__":
    main()
