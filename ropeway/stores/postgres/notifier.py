"""Rate-limited NOTIFY: a queue's listeners are woken at once if they were idle, then at most once per interval."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ...errors import StoreError
from .link import Statement
from .parameters import texts
from .pool import LinkPool
from .statements import in_schema
from .target import Target

INTERVAL: Final = 0.01
"""Seconds between two notifications of one queue by one handle."""
LAST_NOTIFY: Final = 1.0
"""Seconds that closing waits for a server, which may not answer, to take what is pending."""


class Notifier:
    """Sends the notifications that calls were not allowed to send themselves.

    A call that writes a step asks `may_notify` first. If it may, its function notifies; if not, the function answers
    what it left out, and one NOTIFY for all of that is sent when the interval is over.
    """

    def __init__(self, target: Target, pool: LinkPool) -> None:
        self._pool = pool
        self._notify = Statement(in_schema("SELECT ropeway.notify($1)", target.schema))
        self._loop = asyncio.get_running_loop()
        self._notified_at: dict[str, float] = {}
        self._pending: set[str] = set()
        self._pending_queues: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def may_notify(self, queues: Sequence[str]) -> bool:
        return self._wait_of(queues) <= 0

    def note(self, queues: Sequence[str], wakes: Sequence[str]) -> None:
        """Takes what a call answered: the notifications it sent (`+`), and those it was not allowed to send (`-`)."""
        for wake in wakes:
            if wake.startswith("+"):
                self._notified_at.update(dict.fromkeys(queues, self._loop.time()))
            else:
                self._pending.add(wake)
                self._pending_queues.update(queues)
        if self._pending and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send_later())

    def _wait_of(self, queues: Sequence[str] | set[str]) -> float:
        """Seconds until all of the queues may be notified; 0 or less means now."""
        last = max((self._notified_at.get(queue, 0.0) for queue in queues), default=0.0)
        return last + INTERVAL - self._loop.time()

    async def _send_later(self) -> None:
        while self._pending:
            # Not a whole interval: the last notification was some time ago, and its listeners are idle again.
            await asyncio.sleep(max(0.0, self._wait_of(self._pending_queues)))
            pending, self._pending = sorted(self._pending), set()
            self._notified_at.update(dict.fromkeys(self._pending_queues, self._loop.time()))
            self._pending_queues = set()
            try:
                await self._pool.call(self._notify, (texts(pending),))
            except StoreError:
                # Listeners have a safety poll.
                return
            except asyncio.CancelledError:
                self._pending.update(pending)
                raise

    async def close(self) -> None:
        """Sends what is pending: without it, listeners would find the work by their safety poll only."""
        if self._sending is not None and not self._sending.done():
            self._sending.cancel()
            await asyncio.wait([self._sending])
        pending, self._pending = sorted(self._pending), set()
        if pending:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(LAST_NOTIFY):
                    await self._pool.call(self._notify, (texts(pending),))
