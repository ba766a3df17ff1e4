"""Whether the server lives, whether its store answers, and what it offers."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import msgspec

from ... import __version__
from ...errors import StoreError
from ..problems import Refused
from ..roles import RESERVED
from ..routes import Call, Route

READY_SECONDS: Final = 5.0
"""A store that does not answer within this time is not ready."""
REMEMBERED: Final = 1.0
"""Seconds for which an answer of the store counts: probes of many must not become load."""


class Health(msgspec.Struct, frozen=True):
    status: str
    version: str = __version__


async def live(_: Call) -> Health:
    return Health("ok")


async def ready(call: Call) -> Health:
    if call.broker.closing.is_set():
        raise _not_ready("the server is about to end")
    if time.monotonic() - call.broker.ready_at > REMEMBERED:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await call.broker.start()
                await call.store.recall(f"{RESERVED}ready", "ready")
        except (TimeoutError, StoreError) as error:
            raise _not_ready("the store does not answer") from error
        call.broker.ready_at = time.monotonic()
    return Health("ok")


def _not_ready(detail: str) -> Refused:
    return Refused(503, "not-ready", detail, headers={"retry-after": "1"})


async def openapi(call: Call) -> Any:
    return {**call.broker.openapi, "servers": [{"url": call.scope.get("root_path") or "/"}]}


ROUTES: Final = (
    Route("GET", "/livez", live, (), "Whether the server runs.", "none", answer=Health, kind="probe", tag="server"),
    Route("GET", "/readyz", ready, (), "Whether its store answers.", "none", answer=Health, kind="probe", tag="server"),
    Route(
        "GET",
        "/openapi.json",
        openapi,
        (),
        "This description, as OpenAPI 3.1.",
        "none",
        answer=dict[str, Any],
        kind="probe",
        tag="server",
    ),
)
