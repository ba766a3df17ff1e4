"""A thread with an event loop that no handler can block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from ..store.contract import Store
from .service import Service, Services

Make: TypeAlias = Callable[[], Coroutine[Any, Any, list[Service]]]
Leave: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class Keeper:
    """Runs services in a thread of their own. `make` and `leave` are called on that thread's loop."""

    def __init__(self, make: Make, leave: Leave) -> None:
        self._make = make
        self._leave = leave
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._finished: asyncio.Future[None] | None = None
        self._stopping = False
        self._services = Services()

    async def start(self) -> asyncio.Future[None]:
        """Returns when the services run; what it returns is done when they have ended, with their error if any."""
        home = asyncio.get_running_loop()
        # Before there is anything to wait for: a process that has too many threads cannot start it.
        threading.Thread(target=self._thread, args=(home,), name="ropeway-keeper", daemon=True).start()
        self._started = home.create_future()
        self._finished = home.create_future()
        await self._started
        return self._finished

    async def keep(self, make: Make) -> None:
        """Makes more services on that loop; returns when they run beside the others, or when the thread has ended."""
        assert self._loop is not None, "start it first"
        assert self._finished is not None, "start it first"
        there = self._add(make)
        try:
            adding = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there, self._loop))
        except RuntimeError:
            there.close()
            adding = self._finished
        try:
            await asyncio.wait([adding])
            if adding.cancelled():
                adding = self._finished
                await asyncio.wait([adding])
        finally:
            if adding is not self._finished:
                adding.cancel()
        adding.result()

    async def _add(self, make: Make) -> None:
        self._services.add(await make())

    async def stop(self) -> None:
        self._stopping = True
        if self._finished is None or self._finished.done():
            return
        # Without a loop yet, the thread sees by itself that it is not wanted.
        if self._loop is not None and self._main is not None:
            with suppress(RuntimeError):  # The thread's loop may just have ended by itself.
                self._loop.call_soon_threadsafe(self._main.cancel)
        await asyncio.wait([self._finished])

    def _thread(self, home: asyncio.AbstractEventLoop) -> None:
        error: BaseException | None = None
        try:
            asyncio.run(self._serve(home))
        except asyncio.CancelledError:
            pass
        except BaseException as raised:  # noqa: BLE001 - it is raised where the worker waits
            error = raised
        with suppress(RuntimeError):  # The worker's loop may be closed: then nobody is left to be told.
            home.call_soon_threadsafe(self._finish, error)

    async def _serve(self, home: asyncio.AbstractEventLoop) -> None:
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        try:
            if not self._stopping:
                await self._add(self._make)
                home.call_soon_threadsafe(self._begin)
                await self._services.run()
        finally:
            await self._leave()

    def _begin(self) -> None:
        if self._started is not None and not self._started.done():
            self._started.set_result(None)

    def _finish(self, error: BaseException | None) -> None:
        for future in (self._started, self._finished):
            if future is None or future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                # Looked at, so that asyncio does not complain when the worker has ended for another reason.
                future.exception()


def keeper_for(stores: Iterable[Store], make: Make, leave: Leave) -> Keeper:
    """In a thread of its own, unless a store lives by another time than the machine's and brings a keeper for that."""
    factories = (store.offers.keeper for store in stores)
    factory: Callable[[Make, Leave], Keeper] = next(filter(None, factories), Keeper)
    return factory(make, leave)
