"""Listeners of a `FakeStore`."""

from __future__ import annotations

from ..store.commands import Claim
from ..store.values import Claimed
from ..store.waiting import ClaimListener
from .fake_loop import IN_POLL


class PollingListener:
    """A listener whose timeouts a fake clock may pass over while handlers sleep: stores of tests miss no wake-up."""

    def __init__(self, inner: ClaimListener) -> None:
        self._inner = inner

    @property
    def is_closed(self) -> bool:
        return self._inner.is_closed

    async def wait(self, timeout: float | None = None) -> bool:
        before = IN_POLL.set(True)
        try:
            return await self._inner.wait(timeout)
        finally:
            IN_POLL.reset(before)

    async def hold(self, request: Claim, timeout: float) -> Claimed | None:
        return await self._inner.hold(request, timeout)

    def interrupt(self) -> None:
        self._inner.interrupt()

    def close(self) -> None:
        self._inner.close()
