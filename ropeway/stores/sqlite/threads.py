"""Helpers to start threads and to await functions in them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from ...errors import StoreUnavailable

T = TypeVar("T")


class Promise(Future[T]):
    """A future that its waiters cannot cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()


def start(thread: threading.Thread, path: str) -> None:
    try:
        thread.start()
    except RuntimeError as error:
        raise StoreUnavailable(path, f"{error}: this process has too many threads") from error


async def in_a_thread(path: str, function: Callable[[], T]) -> T:
    """Runs a blocking function in a new thread. `asyncio.to_thread` would refuse when the main thread has ended."""
    done: Promise[T] = Promise()
    start(threading.Thread(target=_do, args=(function, done), name=f"ropeway opens {path}", daemon=True), path)
    return await asyncio.wrap_future(done)


def _do(function: Callable[[], T], done: Promise[T]) -> None:
    try:
        done.set_result(function())
    except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
        done.set_exception(error)
