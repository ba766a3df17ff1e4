"""The thread in which a worker's maintenance services run, with its own event loop: no handler can block it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from ...store.contract import Store
from ..service import Service, Services

MakeServices: TypeAlias = Callable[[], Coroutine[Any, Any, list[Service]]]
CleanUp: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class MaintenanceThread:
    """Runs services in a dedicated thread. `make` and `clean_up` are called on that thread's loop."""

    def __init__(self, make: MakeServices, clean_up: CleanUp) -> None:
        self._make = make
        self._clean_up = clean_up
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._finished: asyncio.Future[None] | None = None
        self._stopping = False
        self._services = Services()

    async def start(self) -> asyncio.Future[None]:
        """Returns when the services run. Its future is done when they have ended, with their error if any."""
        home = asyncio.get_running_loop()
        # Before the futures exist: starting a thread may raise, and then nothing would resolve them.
        threading.Thread(target=self._thread, args=(home,), name="ropeway-maintenance", daemon=True).start()
        self._started = home.create_future()
        self._finished = home.create_future()
        await self._started
        return self._finished

    async def add_services(self, make: MakeServices) -> None:
        """Adds services while the thread runs; returns when they have started, or when the thread has ended."""
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

    async def _add(self, make: MakeServices) -> None:
        self._services.add(await make())

    async def stop(self) -> None:
        self._stopping = True
        if self._finished is None or self._finished.done():
            return
        # If the thread has no loop yet, it will see `_stopping`.
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
        with suppress(RuntimeError):  # The worker's loop may be closed: then nobody waits any more.
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
            await self._clean_up()

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
                # Marks it as retrieved: asyncio would log a warning if the worker has ended for another reason.
                future.exception()


def maintenance_for(stores: Iterable[Store], make: MakeServices, clean_up: CleanUp) -> MaintenanceThread:
    """A `MaintenanceThread`, or what a store offers instead because its clock is not the machine's."""
    factories = (store.offers.maintenance for store in stores)
    factory: Callable[[MakeServices, CleanUp], MaintenanceThread] = next(filter(None, factories), MaintenanceThread)
    return factory(make, clean_up)
