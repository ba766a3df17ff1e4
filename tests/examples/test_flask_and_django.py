"""The Flask and Django examples, by the test clients of their frameworks and a worker in another process."""

from __future__ import annotations

import signal

from tests.patience import PATIENCE

from .conftest import Load, Start


def test_a_thumbnail_is_made_by_a_worker_in_another_process(load: Load, start: Start):
    example = load("flask_app")
    worker = start("flask_app", "worker")
    web = example.app.test_client()

    assert web.post("/thumbnails/a", json={"path": "a.jpg", "width": 80}).json == {"id": "a", "created": True}
    assert example.queue.sync.get("a").result(timeout=PATIENCE) == "a.jpg at 80 px"
    assert web.get("/thumbnails/a").json["state"] == "completed"

    worker.send_signal(signal.SIGTERM)
    _, errors = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0, errors


def test_other_work_under_the_same_id_is_refused(load: Load):
    web = load("flask_app").app.test_client()
    web.post("/thumbnails/a", json={"path": "a.jpg", "width": 80})

    assert web.post("/thumbnails/a", json={"path": "b.jpg", "width": 80}).status_code == 409
    assert web.post("/thumbnails/no such id", json={}).status_code == 422
    assert web.get("/thumbnails/b").status_code == 404


def test_a_receipt_is_sent_for_a_committed_order_only(start: Start):
    process = start("django_app")
    output, errors = process.communicate(timeout=120)

    assert process.returncode == 0, errors
    assert "POST /orders/7 201 {'order': 7}" in output
    assert "POST /orders/7 again 409" in output
    assert "GET /orders/7 {'state': 'completed', 'result': 'receipt for order 7'}" in output
