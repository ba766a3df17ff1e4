"""Jobs of every kind, with texts that would be code in a page that forgot to escape them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from ropeway import JobFailed, Queue, Unrecoverable, Worker
from ropeway.store.contract import Store
from tests.patience import PATIENCE

HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</textarea></pre><script>alert(1)</script>",
    "javascript:alert(1)//",
    "{{ 7 * 7 }}{% raw %}",
    "<!--<script>",
    "\u202e<b>reversed</b>",
)
RAW: Final = ("<script>alert", "<img src=x", "<svg onload", "<b>reversed", "<!--<script", ">49<", 'href="javascript:')
"""What a page that forgot to escape would contain."""


def _name(text: str) -> str:
    """Names and tags are printable."""
    return text.replace("\u202e", "")


async def fill(store: Store, name: str = "mail") -> tuple[Queue, dict[str, str]]:
    """A queue with a job of each hostile text, which fail with it; and the ids of some jobs by state."""
    queue = Queue(name, store=store)

    async def handler(job: Any) -> Any:
        await job.log(job.data["text"])
        await job.progress(job.data["text"])
        if job.data.get("fails"):
            raise Unrecoverable(job.data["text"])
        return {"text": job.data["text"]}

    jobs = [
        await queue.add(_name(text), {"text": text, "fails": fails}, tags=[_name(text)])
        for text in HOSTILE
        for fails in (True, False)
    ]
    async with Worker(queue, handler):
        for job in jobs:
            with suppress(JobFailed):
                await job.result(timeout=PATIENCE)
    later = await queue.add("later", {"text": HOSTILE[0]}, delay="1 hour")
    waiting = await queue.add("welcome", {"to": "a@example.com", "wide": 12345678901234567890}, priority=3)
    failed, done = await queue.find("failed", limit=1), await queue.find("completed", limit=1)
    await queue.pause(HOSTILE[0])
    await queue.schedule("nightly", HOSTILE[0], {"text": HOSTILE[1]}, cron="0 3 * * *")
    return queue, {"delayed": later.id, "waiting": waiting.id, "failed": failed[0].id, "completed": done[0].id}
