"""Streams of events as the responses of web frameworks, each asked by its own test client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import django
import flask
import pytest
from django.conf import settings
from django.core.exceptions import BadRequest as DjangoBadRequest
from django.test import AsyncRequestFactory, RequestFactory
from starlette.exceptions import HTTPException
from starlette.requests import Request
from werkzeug.exceptions import BadRequest as WerkzeugBadRequest

from ropeway import Queue
from ropeway.client.sse import RESUMES_AT
from ropeway.contrib import django as in_django
from ropeway.contrib import flask as in_flask
from ropeway.contrib import starlette as in_starlette
from ropeway.errors import InvalidOption
from tests.patience import PATIENCE


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncGenerator[Queue, None]:
    async with Queue("letters", f"sqlite:///{tmp_path}/jobs.db") as queue:
        yield queue


@pytest.fixture(scope="module", autouse=True)
def _django() -> None:
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"])
        django.setup()


def request_of(**headers: str) -> Request:
    sent = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": sent})


async def first(stream: AsyncGenerator[bytes, None], count: int) -> list[bytes]:
    async with asyncio.timeout(PATIENCE):
        messages = [await anext(stream) for _ in range(count)]
    await stream.aclose()
    return messages


def first_blocking(stream: Generator[bytes, None, None], count: int) -> list[bytes]:
    messages = [next(stream) for _ in range(count)]
    stream.close()
    return messages


async def test_starlette_streams_and_resumes(queue: Queue):
    await queue.add("one")
    [seen, *_] = [event async for event in queue.events("start", follow=False)]

    response = in_starlette.event_response(request_of(Last_Event_ID=seen.id), queue, snapshot=True)
    stream: Any = response.body_iterator
    _, resumed = await first(stream, 2)

    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert b"event: waiting\n" in resumed


async def test_a_position_that_is_none_is_refused_before_the_response_begins(queue: Queue):
    with pytest.raises(InvalidOption):
        in_starlette.event_response(request_of(), queue, after="yesterday")


@pytest.mark.parametrize("sent", ["yesterday", "start"])
async def test_a_client_that_resumes_at_no_event_is_answered_400(queue: Queue, sent: str):
    with pytest.raises(HTTPException) as in_asgi:
        in_starlette.event_response(request_of(Last_Event_ID=sent), queue)
    with (
        flask.Flask(__name__).test_request_context(headers={RESUMES_AT: sent}),
        pytest.raises(WerkzeugBadRequest, match=RESUMES_AT),
    ):
        in_flask.event_response(queue)
    with pytest.raises(DjangoBadRequest, match=RESUMES_AT):
        in_django.event_response(RequestFactory().get("/", headers={RESUMES_AT: sent}), queue)

    assert in_asgi.value.status_code == 400


async def test_flask_streams_and_resumes(queue: Queue):
    await queue.add("one")
    [seen, *_] = [event async for event in queue.events("start", follow=False)]
    app = flask.Flask(__name__)

    def ask() -> list[bytes]:
        with app.test_request_context(headers={"Last-Event-ID": seen.id}):
            response = in_flask.event_response(queue)
        assert response.mimetype == "text/event-stream"
        stream: Any = response.response
        return first_blocking(stream, 2)

    _, resumed = await asyncio.to_thread(ask)
    assert b"event: waiting\n" in resumed


def streamed(response: Any) -> Any:
    return response._iterator


async def test_django_streams_and_resumes_under_asgi(queue: Queue):
    await queue.add("one")
    [seen, *_] = [event async for event in queue.events("start", follow=False)]

    request = AsyncRequestFactory().get("/", headers={"Last-Event-ID": seen.id})
    response = in_django.event_response(request, queue)
    _, resumed = await first(streamed(response), 2)

    assert response.is_async
    assert b"event: waiting\n" in resumed


async def test_django_streams_under_wsgi(queue: Queue):
    def ask() -> list[bytes]:
        response = in_django.event_response(RequestFactory().get("/"), queue, snapshot=True)
        assert not response.is_async
        return first_blocking(streamed(response), 2)

    _, snapshot = await asyncio.to_thread(ask)
    assert b"event: snapshot\n" in snapshot
