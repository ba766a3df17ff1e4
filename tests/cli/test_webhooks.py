"""Deliveries of webhooks from the command line."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue as Queued

import pytest

from ropeway import Queue
from ropeway.cli.exit_codes import ExitCode
from ropeway.job.extras import Extras, WebhookRule
from ropeway.job.webhooks import DELIVERIES, delivery_id
from ropeway.testing.factories import QUEUE
from ropeway.webhooks.records import disable
from tests.patience import PATIENCE

from .conftest import Arrange, Ropeway
from .processes import Programs

URL = "https://example.com/hook"


@pytest.fixture
def delivery(arrange: Arrange) -> str:
    """The id of the delivery that reports the job `one`."""
    job = arrange.job("failed", id="one", extras=Extras(webhook=WebhookRule(URL, ("failed",))))
    assert job.finished_at is not None
    return delivery_id(QUEUE, "one", job.finished_at, "failed")


def test_deliveries_are_listed_with_where_they_go(ropeway: Ropeway, delivery: str):
    listed = ropeway("webhooks", "list")
    assert delivery in listed.out
    assert URL in listed.out
    [found] = ropeway("webhooks", "list", "--queue", QUEUE, "--state", "waiting", "--json").json["deliveries"]
    assert (found["id"], found["webhook"]) == (delivery, URL)
    assert ropeway("webhooks", "list", "--state", "failed").err.strip() == "No deliveries match."


def test_a_delivery_is_shown_by_itself_and_with_its_job(ropeway: Ropeway, delivery: str):
    shown = ropeway("webhooks", "show", delivery)
    assert f"{QUEUE}/one · failed" in shown.out
    assert URL in shown.out
    job = ropeway("jobs", "show", "one", "--queue", QUEUE)
    assert f"waiting ({delivery})" in job.out
    assert ropeway("webhooks", "show", "nothing").code == ExitCode.NOT_FOUND


def test_a_delivery_is_sent_again(ropeway: Ropeway, arrange: Arrange, delivery: str):
    arrange.on_queue(lambda deliveries: deliveries.cancel(delivery), DELIVERIES)
    sent = ropeway("webhooks", "send-again", delivery, "nothing")
    assert sent.code == ExitCode.NOT_FOUND
    assert f"{delivery} is sent again" in sent.out
    assert arrange.state_of(delivery, DELIVERIES) == "waiting"


def test_a_url_is_enabled_again(ropeway: Ropeway, arrange: Arrange):
    arrange.on_store(lambda store: disable(store, QUEUE, URL))
    assert URL in ropeway("webhooks", "list", "--disabled").out
    assert ropeway("webhooks", "enable", URL).out.strip() == f"Enabled for {QUEUE}"
    assert ropeway("webhooks", "enable", URL).code == ExitCode.NOT_FOUND


def test_a_job_is_added_with_a_webhook(ropeway: Ropeway, arrange: Arrange):
    assert ropeway("add", QUEUE, "send", "--id", "two", "--webhook", URL).code == ExitCode.OK

    async def webhook(queue: Queue) -> str | None:
        job = await queue.get("two")
        return None if job is None else job.snapshot.webhook

    assert arrange.on_queue(webhook) == URL
    assert ropeway("add", QUEUE, "send", "--webhook", "http://127.0.0.1/").code == ExitCode.USAGE


@contextmanager
def receiver() -> Iterator[tuple[int, Queued[bytes]]]:
    """Its port, and the messages that came."""
    came: Queued[bytes] = Queued()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port, came
        finally:
            server.shutdown()
            thread.join()


def test_deliver_sends_what_waits_and_ends_in_good_order(programs: Programs, arrange: Arrange):
    with receiver() as (port, came):
        webhook = WebhookRule(f"http://localhost:{port}/", ("failed",))
        job = arrange.job("failed", id="one", extras=Extras(webhook=webhook))
        program = programs.start("webhooks", "deliver", ROPEWAY_WEBHOOK_ALLOW=f"localhost:{port}")
        message = json.loads(came.get(timeout=PATIENCE))
        program.signal(signal.SIGTERM)
        assert program.exit_code() == ExitCode.OK
    assert (message["type"], message["data"]["id"]) == ("job.failed", "one")
    assert job.finished_at is not None
    assert arrange.state_of(delivery_id(QUEUE, "one", job.finished_at, "failed"), DELIVERIES) == "completed"
