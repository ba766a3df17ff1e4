"""What a queue has of its store: a handle, and on each event loop what waits there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self

from ..errors import InvalidOption
from ..showing import shown
from ..store.contract import Store
from ..store.url import connect
from . import portal
from .adds import Adds
from .endings import Endings
from .loading import refuse_while_loading


class OnLoop(NamedTuple):
    """What waits on one event loop. A queue may be used on several, each in a thread of its own."""

    store: Store
    adds: Adds
    endings: Endings


class Attached:
    """The part of `Queue` that opens, closes and finds the store."""

    def __init__(self, name: str, url: str | None, store: Store | None) -> None:
        if url is not None and store is not None:
            raise InvalidOption("store", "and 'url' were both given: give one of them")
        if isinstance(store, str):
            raise InvalidOption("store", f"cannot be text: give the URL as Queue({name!r}, url), or connect(url) here")
        if store is not None and not _is_store(store):
            raise InvalidOption("store", f"cannot be {shown(store)}: give what connect(url) answers")
        self.name = name
        self._url = url
        self._store = connect(url) if store is None else store
        self._owns_store = store is None
        self._is_closed = False
        # No weak keys: what waits on a loop holds it.
        self._on_loops: dict[asyncio.AbstractEventLoop, OnLoop] = {}

    async def __aenter__(self) -> Self:
        """Opens the store; once more, if the queue was closed: an application may be started twice in a process."""
        if self._is_closed:
            self._store, self._on_loops, self._is_closed = connect(self._url), {}, False
        await self.store.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the store, for the sync twin too, unless it was given to this queue by its caller."""
        if self._owns_store:
            self._is_closed = True
            await self._store.close()
        background = portal.loop()
        twin = None if background is None else self._on_loops.pop(background, None)
        if twin is not None and twin.store is not self._store:
            await portal.do(twin.store.close())
            portal.forget(twin.store)

    @property
    def twin_store(self) -> Store:
        """The handle of the sync twin, which belongs to the background loop; for threads without a loop."""
        portal.refuse_at_the_end()
        background = portal.loop()
        here = None if background is None else self._on_loops.get(background)
        return (here or portal.run(self._settle_in())).store

    async def _settle_in(self) -> OnLoop:
        return self._here

    @property
    def store(self) -> Store:
        """Where its jobs live. On the background loop of sync calls this is a handle of that loop's own."""
        return self._here.store if portal.is_here() else self._store

    @contextmanager
    def moved_to(self, store: Store) -> Iterator[None]:
        """Inside the block this very object is on another store; for tests of code that has a queue of its own.

        It holds for all threads and loops. Start no worker outside that goes on inside, nor the other way round.
        """
        before = self._store, self._owns_store, self._is_closed, self._on_loops
        inside: dict[asyncio.AbstractEventLoop, OnLoop] = {}
        self._store, self._owns_store, self._is_closed, self._on_loops = store, False, False, inside
        try:
            yield
        finally:
            self._store, self._owns_store, self._is_closed, self._on_loops = before
            for here in inside.values():
                if here.store is not store:
                    portal.let_go(here.store)

    @property
    def adds(self) -> Adds:
        return self._here.adds

    @property
    def endings(self) -> Endings:
        return self._here.endings

    @property
    def _here(self) -> OnLoop:
        loop = asyncio.get_running_loop()
        here = self._on_loops.get(loop)
        if here is None:
            refuse_while_loading()
            store = self._store
            # Of a closed store the sibling would be open again.
            if portal.is_here() and not self._is_closed:
                store = store.sibling()
                portal.keep(store, self)
            self._forget_closed_loops()
            here = self._on_loops[loop] = OnLoop(store, Adds(store), Endings(store, self.name))
        return here

    def _forget_closed_loops(self) -> None:
        """Each `asyncio.run` has a loop of its own."""
        for loop in [*self._on_loops]:
            if loop.is_closed():
                self._on_loops.pop(loop, None)


def _is_store(given: object) -> bool:
    """By one of its verbs, which a proxy may pass on: stores have no class in common."""
    try:
        return callable(getattr(given, "settle", None))
    except Exception:  # noqa: BLE001 - an object may answer for its attributes as it likes
        return False
