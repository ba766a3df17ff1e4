"""Commands to a cluster: finds the node that holds the slot of a key, and follows redirections.

While a slot moves the old way, some of its keys are here and some are there, and a script would take those that are
there for missing. So every script names, beside the tag, a key that never exists: servers then refuse it with TRYAGAIN
until the slot has moved whole, and the call waits.
"""

from __future__ import annotations

import asyncio
import random
from binascii import crc_hqx
from functools import partial
from typing import Any, Final, TypeAlias

import hiredis

from ...errors import NotConnected, StoreUnavailable
from ...store.single_flight import SingleFlight
from ...store.tries import FIRST_PAUSE, LONGEST_PAUSE
from .connection import Commands, Connection, open_link
from .failures import code_of, typed
from .hedging import first_answer
from .link import Argument
from .scripts import Script
from .target import Target

MOST_HOPS: Final = 16
PATIENCE: Final = 5.0
"""Seconds in which a slot may find its next primary before anybody hears of it."""
HEAD_START: Final = 0.3
"""Seconds that a server has to say who has which slot, before the next one is asked too."""

Place: TypeAlias = tuple[str, int]


class Cluster(Commands):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._places: dict[int, Place] = {}
        """Where each slot is; one that was found in trouble is taken out, and looked up when it is used again."""
        self._connections: dict[Place, Connection] = {}
        self._said_last: Place | None = None
        self._reading = SingleFlight(target.url, self._ask_for_map)

    async def open(self) -> None:
        await self._read_map()

    async def close(self) -> None:
        await self._reading.close()
        self._places.clear()
        for connection in [*self._connections.values()]:
            await connection.close()

    async def run(self, script: Script, keys: tuple[str, ...], *arguments: Argument) -> Any:
        return await super().run(script, (*keys, f"{keys[0]}:never"), *arguments)

    async def ask(self, key: str, *command: Argument) -> Any:
        slot = slot_of(key)
        deadline = asyncio.get_running_loop().time() + PATIENCE
        pause = FIRST_PAUSE
        for _ in range(MOST_HOPS):
            place = await self._place_of(slot)
            try:
                return await self._connection(place).ask(key, *command)
            except NotConnected:
                # Nothing was sent. Its replica may take over.
                self._doubt(slot, place)
                if asyncio.get_running_loop().time() + pause > deadline:
                    raise
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
                pause = min(pause * 2, LONGEST_PAUSE)
            except StoreUnavailable:
                self._doubt(slot, place)
                raise
            except hiredis.ReplyError as error:
                answer = await self._follow(slot, place, error, command)
                if answer is not _ASK_THERE:
                    return answer
        raise StoreUnavailable(self.target.url, f"the servers of the cluster do not agree on who has slot {slot}")

    async def where(self, key: str, *, anew: bool = False) -> Target:
        """The node that holds a key, as far as is known; `anew` asks the cluster again."""
        slot = slot_of(key)
        if anew:
            self._places.pop(slot, None)
        return self.target.at(*await self._place_of(slot))

    async def _place_of(self, slot: int) -> Place:
        place = self._places.get(slot)
        if place is None:
            await self._read_map()
            place = self._places.get(slot)
        if place is None:
            raise StoreUnavailable(self.target.url, f"no server of the cluster has slot {slot}")
        return place

    def _doubt(self, slot: int, place: Place) -> None:
        """Forgets where one slot is. The others stay known, because asking takes time."""
        if self._places.get(slot) == place:
            del self._places[slot]

    async def _follow(self, slot: int, place: Place, error: hiredis.ReplyError, command: Any) -> Any:
        """Follows a redirection: MOVED for good, ASK for this command only."""
        code, *there = str(error).split(" ")
        if code not in ("MOVED", "ASK"):
            raise error
        host, _, port = there[1].rpartition(":")
        target = (host or place[0], int(port))
        if code == "MOVED":
            self._places[slot] = target
            return _ASK_THERE
        link = await self._connection(target).link()
        asking = link.ask("ASKING")
        answer = link.ask(*command)
        try:
            await asking
            return await answer
        except hiredis.ReplyError as refused:
            if code_of(refused) not in ("TRYAGAIN", "MOVED"):
                raise
            await asyncio.sleep(LONGEST_PAUSE * random.random())  # noqa: S311 - spreads load
            return _ASK_THERE
        except OSError as lost:
            raise typed(self.target.url, lost) from lost

    def _connection(self, place: Place) -> Connection:
        connection = self._connections.get(place)
        if connection is None:
            connection = self._connections[place] = Connection(self.target.at(*place), patience=0)
        return connection

    async def _read_map(self) -> None:
        """Reads the map of slots; concurrent callers share one request."""
        await self._reading.result()

    async def _ask_for_map(self) -> None:
        """Asks known nodes, the next one after a short wait."""
        first = () if self._said_last is None else (self._said_last,)
        places = dict.fromkeys([*first, *self._connections, *self.target.seeds])
        try:
            self._said_last, self._places = await first_answer(
                (partial(self._map_of, place) for place in places), HEAD_START
            )
        except StoreUnavailable as error:
            raise NotConnected(self.target.url, str(error)) from error

    async def _map_of(self, place: Place) -> tuple[Place, dict[int, Place]]:
        link = await open_link(self.target.at(*place))
        try:
            said = await link.ask("CLUSTER", "SLOTS")
        except (hiredis.ReplyError, OSError) as error:
            raise typed(self.target.url, error) from error
        finally:
            link.abort()
            await link.closed.wait()
        return place, {
            slot: (primary[0].decode() or place[0], primary[1])
            for first, last, primary, *_ in said
            for slot in range(first, last + 1)
        }


_ASK_THERE: Final = object()


def slot_of(key: str) -> int:
    """The slot of a key with a hash tag, which all keys of the store have."""
    return crc_hqx(key[key.index("{") + 1 : key.index("}")].encode(), 0) % 16384
