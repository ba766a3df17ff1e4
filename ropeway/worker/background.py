"""A worker in a background thread, for `with worker:` in code without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeAlias

Serve: TypeAlias = Callable[[Callable[[], None]], Coroutine[Any, Any, None]]
"""Runs the worker until it is stopped; calls its argument when the worker has started."""


class Background:
    def __init__(self, serve: Serve, stop: Callable[[], None]) -> None:
        self._serve = serve
        self._stop = stop
        self._started: Future[None] = Future()
        self._ended: Future[None] = Future()

    def start(self) -> None:
        """Returns when the worker has started; raises what kept it from that."""
        threading.Thread(target=self._run, name="ropeway-worker", daemon=True).start()
        try:
            self._started.result()
        except BaseException:
            # Ctrl-C, or an error of the worker: `end` will not be called.
            self._stop()
            raise

    def end(self) -> None:
        """Stops the worker and waits for its end. Ctrl-C meanwhile hurries it, and is raised after that."""
        self._stop()
        try:
            self._ended.result()
        except KeyboardInterrupt:
            self._stop()
            self._ended.exception()
            raise

    def _run(self) -> None:
        try:
            asyncio.run(self._serve(lambda: self._started.set_result(None)))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            failed = self._ended if self._started.done() else self._started
            failed.set_exception(error)
        else:
            self._ended.set_result(None)
