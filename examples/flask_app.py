"""Flask views that add jobs and show what became of them, without asyncio.

    python -m examples.flask_app            a visit: it sends itself some requests and prints the answers
    python -m examples.flask_app worker     a worker, until Ctrl-C

It needs `pip install flask`. A server runs `examples.flask_app:app`, with as many processes and threads as it likes:
queues follow its forks.
"""

from __future__ import annotations

import sys
from typing import Any

try:
    from flask import Flask, abort, request
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install flask")

from ropeway import DuplicateJob, InvalidInput, Queue, SyncJob, Worker

queue = Queue("thumbnails", attempts=3, backoff=1)
app = Flask(__name__)


def resize(job: SyncJob) -> str:
    job.progress(50)
    return f"{job.data['path']} at {job.data['width']} px"


worker = Worker(queue, {"resize": resize}, concurrency=4)


@app.post("/thumbnails/<id>")
def make(id: str) -> tuple[dict[str, Any], int]:
    try:
        job = queue.sync.add("resize", request.get_json(), id=id)
    except (InvalidInput, DuplicateJob) as refused:
        return {"error": str(refused)}, 409 if isinstance(refused, DuplicateJob) else 422
    return {"id": job.id, "created": job.created}, 202


@app.get("/thumbnails/<id>")
def show(id: str) -> dict[str, Any]:
    job = queue.sync.get(id)
    if job is None or job.snapshot is None:
        abort(404)
    return {"state": job.snapshot.state, "progress": job.snapshot.progress, "result": job.snapshot.result}


def visit() -> None:
    with worker:
        web = app.test_client()
        for path, width in (("cat.jpg", 80), ("cat.jpg", 80), ("dog.jpg", 80)):
            answer = web.post("/thumbnails/today", json={"path": path, "width": width})
            print("POST /thumbnails/today", answer.status_code, answer.json)
        job = queue.sync.get("today")
        assert job is not None
        job.result(timeout=30)
        print("GET /thumbnails/today", web.get("/thumbnails/today").json)


if __name__ == "__main__":
    worker.run_sync() if "worker" in sys.argv else visit()
