"""A Django project in one file, whose view adds a job when its transaction is committed.

    python -m examples.django_app            a visit: it sends itself some requests and prints the answers
    python -m examples.django_app worker     a worker, until Ctrl-C

It needs `pip install django`.
"""

from __future__ import annotations

import sys
from typing import Any

try:
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.db import IntegrityError, connection, transaction
    from django.http import Http404, HttpRequest, JsonResponse
    from django.test import Client
    from django.urls import path
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install django")

from ropeway import Queue, SyncJob, Worker

if not settings.configured:
    settings.configure(
        ALLOWED_HOSTS=["*"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        ROOT_URLCONF=__name__,
        SECRET_KEY="for the example",
    )
    django.setup()

queue = Queue("receipts", attempts=3, backoff=1)


def send_receipt(job: SyncJob) -> str:
    return f"receipt for order {job.data['order']}"


worker = Worker(queue, {"send_receipt": send_receipt}, concurrency=4)


def order(request: HttpRequest, number: int) -> JsonResponse:
    """POST stores an order and sees to its receipt; GET tells of the receipt."""
    if request.method == "POST":
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                # Not before the commit: a worker might look for the order sooner, or it might be rolled back.
                transaction.on_commit(lambda: add_receipt(number))
                cursor.execute("INSERT INTO orders VALUES (%s)", [number])
        except IntegrityError:
            return JsonResponse({"error": "this order is known"}, status=409)
        return JsonResponse({"order": number}, status=201)
    job = queue.sync.get(f"receipt-{number}")
    if job is None:
        raise Http404
    return JsonResponse({"state": job.snapshot.state, "result": job.snapshot.result})


def add_receipt(number: int) -> None:
    queue.sync.add("send_receipt", {"order": number}, id=f"receipt-{number}")


urlpatterns = [path("orders/<int:number>", order)]
application: Any = get_wsgi_application()


def visit() -> None:
    with worker:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)")
        web = Client()
        answer = web.post("/orders/7")
        print("POST /orders/7", answer.status_code, answer.json())
        print("POST /orders/7 again", web.post("/orders/7").status_code)
        job = queue.sync.get("receipt-7")
        assert job is not None
        job.result(timeout=30)
        print("GET /orders/7", web.get("/orders/7").json())


if __name__ == "__main__":
    worker.run_sync() if "worker" in sys.argv else visit()
