"""Sentinels, who know where the primary is."""

from __future__ import annotations

import hiredis

from ...errors import StoreError, StoreRefused, StoreUnavailable
from .connection import open_link
from .failures import typed
from .target import Target


class Sentinels:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._places = list(target.seeds)

    async def primary(self) -> Target:
        """Asks one sentinel after the other; the one that answered is asked first next time."""
        trouble: StoreError | None = None
        for place in list(self._places):
            try:
                found = await self._ask(place)
            except StoreUnavailable as error:
                trouble = error
                continue
            self._places.remove(place)
            self._places.insert(0, place)
            return found
        raise StoreUnavailable(self._target.url, f"no sentinel answers ({trouble})") from trouble

    async def _ask(self, place: tuple[str, int]) -> Target:
        # Sentinels have users and passwords of their own, and no databases.
        at = self._target.at(*place)
        link = await open_link(at.nameless())
        try:
            found = await link.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._target.service)
        except (hiredis.ReplyError, OSError) as error:
            raise typed(self._target.url, error) from error
        finally:
            link.abort()
            await link.closed.wait()
        if not found:
            raise StoreRefused(self._target.url, f"the sentinels know no service {self._target.service!r}")
        return self._target.at(found[0].decode(), int(found[1]))
