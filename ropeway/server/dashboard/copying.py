"""A job as code that adds one like it."""

from __future__ import annotations

import json
import shlex
from typing import Any

from ...client.snapshot import Snapshot


def as_python(job: Snapshot, data: Any, url: str) -> str:
    options = "".join(f", {name}={value!r}" for name, value in _options(job).items())
    return (
        "from ropeway import Queue\n\n"
        f"queue = Queue({job.queue!r}, {url!r})\n"
        f"await queue.add({job.name!r}, {data!r}{options})\n"
    )


def as_curl(job: Snapshot, data: Any, base: str) -> str:
    words = {"attempts": "max_attempts"}
    fields = {words.get(name, name): value for name, value in _options(job).items()}
    body = json.dumps({"type": job.name, "payload": data, **fields}, ensure_ascii=False)
    return (
        f"curl -X POST {shlex.quote(f'{base}/v1/queues/{job.queue}/jobs')} \\\n"
        '  -H "Authorization: Bearer $ROPEWAY_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(body)}\n"
    )


def _options(job: Snapshot) -> dict[str, Any]:
    given = {"attempts": job.attempts, "priority": job.priority, "tags": list(job.tags)}
    return {name: value for name, value in given.items() if value not in (0, []) and (name, value) != ("attempts", 1)}
