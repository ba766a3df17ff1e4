"""A queue's connection to its store: a handle, and the adds, updates, waiters and subscribers of each event loop."""

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
from .event_hub import EventHub
from .loading import refuse_while_loading
from .queue_part import queue_part
from .updates import Updates


class OnLoop(NamedTuple):
    """The state of a queue on one event loop. It may be used on several, each in its own thread."""

    store: Store
    adds: Adds
    updates: Updates
    endings: Endings
    hub: EventHub


@queue_part
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
        # Weak keys would be useless: the values reference their loop.
        self._on_loops: dict[asyncio.AbstractEventLoop, OnLoop] = {}

    async def __aenter__(self) -> Self:
        """Opens the store; also again after `close`, because an application may be started twice in a process."""
        if self._is_closed:
            self._store, self._on_loops, self._is_closed = connect(self._url), {}, False
        await self.store.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the store, also for the sync twin, unless it was passed in by the caller."""
        if self._owns_store:
            self._is_closed = True
            await self._store.close()
        background = portal.loop()
        twin = None if background is None else self._on_loops.pop(background, None)
        if twin is not None and twin.store is not self._store:
            await portal.run_on_portal(twin.store.close())
            portal.forget(twin.store)

    @property
    def twin_store(self) -> Store:
        """The store handle of the sync twin, which belongs to the background loop."""
        portal.refuse_at_the_end()
        background = portal.loop()
        on_loop = None if background is None else self._on_loops.get(background)
        return (on_loop or portal.run(self._attach())).store

    async def _attach(self) -> OnLoop:
        return self._on_this_loop

    @property
    def store(self) -> Store:
        """The queue's store. On the background loop of sync calls this is that loop's own handle."""
        return self._on_this_loop.store if portal.is_portal_thread() else self._store

    @contextmanager
    def moved_to(self, store: Store) -> Iterator[None]:
        """Puts this object on another store inside the block, for tests of code with module-level queues.

        It applies to all threads and loops. No worker may run across the beginning or end of the block.
        """
        before = self._store, self._owns_store, self._is_closed, self._on_loops
        inside: dict[asyncio.AbstractEventLoop, OnLoop] = {}
        self._store, self._owns_store, self._is_closed, self._on_loops = store, False, False, inside
        try:
            yield
        finally:
            self._store, self._owns_store, self._is_closed, self._on_loops = before
            for on_loop in inside.values():
                if on_loop.store is not store:
                    portal.close_soon(on_loop.store)

    def shares_store_with(self, other: Attached) -> bool:
        """True if both are on the same jobs. A plain `memory://` is a store of its own."""
        url = self._store.url
        return self._store is other._store or (url == other._store.url and url != "memory://")

    @property
    def adds(self) -> Adds:
        return self._on_this_loop.adds

    @property
    def updates(self) -> Updates:
        return self._on_this_loop.updates

    @property
    def endings(self) -> Endings:
        return self._on_this_loop.endings

    @property
    def hub(self) -> EventHub:
        return self._on_this_loop.hub

    @property
    def _on_this_loop(self) -> OnLoop:
        loop = asyncio.get_running_loop()
        on_loop = self._on_loops.get(loop)
        if on_loop is None:
            refuse_while_loading()
            store = self._store
            # The sibling of a closed store would be open.
            if portal.is_portal_thread() and not self._is_closed:
                store = store.sibling()
                portal.close_with(store, self)
            self._forget_closed_loops()
            on_loop = self._on_loops[loop] = OnLoop(
                store,
                Adds(store),
                Updates(store, self.name),
                Endings(store, self.name),
                EventHub(store, self.name),
            )
        return on_loop

    def _forget_closed_loops(self) -> None:
        """Drops the state of closed loops: each `asyncio.run` creates a new one."""
        for loop in [*self._on_loops]:
            if loop.is_closed():
                self._on_loops.pop(loop, None)


def _is_store(given: object) -> bool:
    """True if it has a method of the contract: a proxy need not be a subclass of `Store`."""
    try:
        return callable(getattr(given, "settle", None))
    except Exception:  # noqa: BLE001 - any object may raise anything from `__getattr__`
        return False
