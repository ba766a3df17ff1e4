"""The audit: who was refused, and who changed what. Lines of the log, and events of the queue `ropeway.audit`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..errors import RopewayError
from ..logger import log
from ..store.contract import Store
from .problems import Refused
from .roles import RESERVED
from .routes import Route

AUDIT_QUEUE: Final = f"{RESERVED}audit"
TOLD: Final = (401, 403)
"""Refusals that are written down; of more attempts than are looked at (429) those before tell enough."""
MOST_WAITING: Final = 1_000
"""Most entries that wait for the store; further ones are in the log alone."""


class Audit:
    """Writes entries in the background: a request does not wait for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[tuple[str, dict[str, Any]]] = deque()
        self._writing: asyncio.Task[None] | None = None

    def refused(self, who: str, address: str, route: Route, params: Mapping[str, str], refusal: Refused) -> None:
        problem = refusal.problem
        if problem.status in TOLD:
            why = {"status": problem.status, "why": problem.detail}
            self._note("refused", _facts(who, address, route, params) | why)

    def done(self, who: str, address: str, route: Route, params: Mapping[str, str]) -> None:
        self._note("operated", _facts(who, address, route, params))

    def _note(self, name: str, facts: dict[str, Any]) -> None:
        level = log.warning if name == "refused" else log.info
        told = " ".join(f"{key}={value!r}" for key, value in facts.items())
        level("audit: %s %s", name, told, extra={"facts": {"event": name, **facts}})
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append((name, facts))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._waiting:
            name, facts = self._waiting.popleft()
            try:
                await self._store.publish(AUDIT_QUEUE, name, msgspec.json.encode(facts).decode())
            except RopewayError as error:
                log.warning("the audit could not be written, and is in the log alone: %s", error)
                self._waiting.clear()

    async def close(self) -> None:
        """Waits for the entries that are left."""
        if self._writing is not None:
            await self._writing


def _facts(who: str, address: str, route: Route, params: Mapping[str, str]) -> dict[str, Any]:
    return {"who": who, "address": address, "method": route.method, "path": route.path, **params}
