"""Client of one sentinel: asks for the primary, and listens for changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import hiredis

from ...errors import StoreError, StoreRefused
from .connection import Connection, open_link
from .failures import typed
from .link import Link
from .target import Target

CHANNELS: Final = ("+switch-master", "+promoted-slave")
"""A switch is announced at its end; while other replicas are turned round, the promoted one takes writes already."""
PAUSE: Final = 1.0


class View(NamedTuple):
    """The primary that a sentinel names, and the epoch of that decision."""

    epoch: int
    host: str
    port: int

    @property
    def place(self) -> tuple[str, int]:
        return self.host, self.port


class Sentinel:
    def __init__(self, target: Target, place: tuple[str, int], news: Callable[[], None]) -> None:
        """`news` is called when the primary may have changed."""
        # Sentinels have users and passwords of their own, and no databases.
        self._target = target.at(*place).nameless()
        self._service = target.service
        self._news = news
        self._asked = _Asked(self._target, patience=0)
        self._heard: Link | None = None

    async def view(self) -> View:
        try:
            named, facts = await asyncio.gather(
                self._asked.ask("", "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service), self._facts()
            )
        except hiredis.ReplyError as error:
            raise typed(self._target.url, error) from error
        except StoreError:
            # Nobody would notice by itself that the other link is as dead.
            if self._heard is not None:
                self._heard.abort()
            raise
        if not named:
            raise StoreRefused(self._target.url, f"the sentinels know no service {self._service!r}")
        return View(int(facts.get(b"config-epoch", 0)), named[0].decode(), int(named[1]))

    async def _facts(self) -> dict[bytes, bytes]:
        with suppress(hiredis.ReplyError):
            said: list[bytes] = await self._asked.ask("", "SENTINEL", "MASTER", self._service)
            return dict(zip(said[::2], said[1::2], strict=True))
        return {}

    async def follow(self) -> None:
        """Listens for failovers until it is cancelled."""
        while True:
            with suppress(StoreError):
                self._heard = link = await open_link(self._target, self._hear)
                try:
                    link.tell("SUBSCRIBE", *CHANNELS)
                    await link.ended.wait()
                finally:
                    link.abort()
                    await link.closed.wait()
            await asyncio.sleep(PAUSE)

    def _hear(self, said: Any) -> None:
        # Also that it is heard from now on: what was said before was missed.
        self._news()

    async def close(self) -> None:
        await self._asked.close()


class _Asked(Connection):
    async def _check(self, link: Link) -> None:
        """Skips the checks of a server: a sentinel stores no jobs."""
