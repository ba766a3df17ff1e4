"""Requests made from the OpenAPI document: none breaks the server, and every answer is as described."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from typing import Any

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ropeway.client.sse import MEDIA_TYPE
from ropeway.server import broker
from ropeway.server.limits import Limits
from ropeway.server.openapi import document
from ropeway.server.routes import Route
from ropeway.server.serving import Address, serving
from ropeway.server.table import ROUTES
from ropeway.testing.conformance.fixtures import NewHandle
from tests.stores.places import PLACES

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
CASES = int(os.environ.get("ROPEWAY_EXAMPLES", "0")) or 2
"""Per operation. There are more than 50 operations, so that 110 of each are more than 5,000."""
DEEP_CASES = 110
PARTS = 8
"""Tests in which they are sent, so that none of them takes minutes."""


@contextmanager
def server_in_a_thread(new_handle: NewHandle) -> Iterator[str]:
    """For clients that block: a server with a loop of its own."""
    loop = asyncio.new_event_loop()
    ready, end = threading.Event(), asyncio.Event()
    found: list[str] = []

    async def run() -> None:
        store = new_handle()
        async with serving(broker(store, limits=Limits(wait=0.01)), Address("127.0.0.1", 0)) as address:
            found.append(address.url)
            ready.set()
            await end.wait()
        await store.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(60)
        loop.close()


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server on the store that is named, or on SQLite."""
    place = PLACES[getattr(request, "param", "sqlite")]
    with server_in_a_thread(place(tmp_path_factory.mktemp("store"))) as address:
        yield address


def answered(routes: Iterable[Route]) -> list[Route]:
    """Without streams of events, whose answers do not end."""
    return [route for route in routes if route.media != MEDIA_TYPE]


def without_tokens(described: dict[str, Any]) -> dict[str, Any]:
    """Otherwise most requests would have a wrong token, and be refused for that alone."""
    del described["components"]["securitySchemes"]
    for methods in described["paths"].values():
        for operation in methods.values():
            del operation["security"]
    return described


def address(url: str, case: Any) -> None:
    """Leads a case to a job and a schedule that exist: otherwise nearly all would end with 404."""
    there = case.path_parameters or {}
    if "queue" in there:
        queue = f"{url}/v1/queues/q"
        there["queue"] = "q"
        if "id" in there:
            there["id"] = httpx.post(f"{queue}/jobs", json={"type": "task", "delay": 60}).json()["id"]
        if "schedule" in there:
            httpx.put(f"{queue}/schedules/s", json={"type": "task", "every": 3600}).raise_for_status()
            there["schedule"] = "s"


def check(url: str, cases: int, part: int = 0, parts: int = 1) -> Counter[bool]:
    """Sends so many cases to each operation of a part; counts how many were carried out, and how many were not."""
    schema: Any = schemathesis.openapi.from_dict(without_tokens(document(answered(ROUTES))))
    schema.config.update(base_url=url)
    reached: Counter[bool] = Counter()
    # Those that fit the document, and those that do not.
    for each, mode in product([*schema.get_all_operations()][part::parts], GenerationMode):
        # A route without parameters has nothing that could be wrong.
        with suppress(Unsatisfiable):
            send(url, each.ok(), mode, max(1, cases // 2), reached)
    return reached


def send(url: str, operation: Any, mode: GenerationMode, cases: int, reached: Counter[bool]) -> None:
    @settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        if mode is GenerationMode.POSITIVE:
            address(url, case)
        answer = case.call_and_validate(checks=CHECKS)
        reached[answer.status_code < 400] += 1

    run()


# The server in its thread draws random numbers while cases are made.
quiet = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")


@quiet
def test_requests_made_from_the_document_break_nothing(url: str):
    assert check(url, CASES).total() >= len(answered(ROUTES))


@quiet
@pytest.mark.deep
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("url", ["sqlite", "redis", "postgres"], indirect=True)
def test_five_thousand_requests_break_nothing(url: str, part: int):
    reached = check(url, DEEP_CASES, part, PARTS)
    assert reached.total() >= 5_000 / PARTS
    # Enough of them got as far as the store: those that are refused at the door show little.
    assert reached[True] >= 800 / PARTS


def test_the_document_is_valid():
    described = document(ROUTES)
    for schema in described["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
