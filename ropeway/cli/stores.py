"""Opening the store of a command, and finding queues in it."""

from __future__ import annotations

import asyncio
import difflib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from ..client.queue import Queue
from ..client.workers import known_queues
from ..errors import StoreMissing
from ..logger import log
from ..store.contract import Store
from ..store.url import connect
from .exit_codes import NotFound

P = ParamSpec("P")
R = TypeVar("R")


def on_store(
    *, make: bool | str = False
) -> Callable[[Callable[Concatenate[Store, P], Coroutine[Any, Any, R]]], Callable[..., R]]:
    """Makes a command of a coroutine function: runs it on a new loop, with the store of `--url`.

    Only with `make` is a store made where there is none: looking into the wrong folder must leave nothing there. Others
    are given an empty one in its place, so that a new file or schema looks as a new server does. Text names the flag of
    the command that decides.
    """

    def decorate(work: Callable[Concatenate[Store, P], Coroutine[Any, Any, R]]) -> Callable[..., R]:
        @wraps(work)
        def command(*args: P.args, **kwargs: P.kwargs) -> R:
            async def on_a_loop() -> R:
                url = kwargs.pop("url")
                assert url is None or isinstance(url, str)
                makes = bool(kwargs[make]) if isinstance(make, str) else make
                if makes:
                    refuse_memory(url)
                try:
                    async with opened(url, make=makes) as store:
                        return await work(store, *args, **kwargs)
                except StoreMissing as missing:
                    async with empty(url) as store:
                        try:
                            answer = await work(store, *args, **kwargs)
                        except NotFound as error:
                            raise NotFound(f"{error.message} ({missing})") from None
                    # Not before: an error is one line.
                    click.echo(missing, err=True)
                    return answer

            return asyncio.run(on_a_loop())

        return command

    return decorate


def set_default_store(url: str | None) -> None:
    """Sets the default store for an app's queues that name none."""
    if url:
        # Checked now (it does not connect), or a wrong URL would be reported as an error of the app.
        connect(url)
        os.environ["ROPEWAY_URL"] = url


def refuse_memory(url: str | None) -> None:
    """Refuses the memory store, whose jobs would be lost with this process."""
    if url is not None and url.startswith("memory:"):
        raise click.UsageError(
            "memory:// lives and ends with one process, so no other can see its jobs: name a store with --url"
        )


@asynccontextmanager
async def opened(url: str | None, *, make: bool = False) -> AsyncIterator[Store]:
    store = connect(url, create=make)
    try:
        if not make:
            await store.open()
        # Otherwise the first call creates it: a command that is refused before leaves nothing behind.
        yield store
    finally:
        await store.close()


async def close_within(seconds: float, store: Store) -> None:
    """Closes the store, or says that it could not: one that cannot be reached must not hold up the process's end."""
    try:
        async with asyncio.timeout(seconds):
            await store.close()
    except TimeoutError:
        log.warning("%s could not be closed within %.1f s: the process ends without that", store.url, seconds)


@asynccontextmanager
async def empty(url: str | None) -> AsyncIterator[Store]:
    """An empty memory store in place of a store that does not exist yet."""
    store = connect("memory://")
    store.url = connect(url, create=False).url
    try:
        yield store
    finally:
        await store.close()


async def known_or_new_queue(store: Store, name: str, *, create: bool) -> Queue:
    """A queue for settings, which may precede its first job if `create` is set."""
    if create:
        return Queue(name, store=store)
    return await known_queue(store, name, " (--create makes it)")


async def known_queue(store: Store, name: str, hint: str = "") -> Queue:
    """An existing queue: a misspelt name must not act on an empty one."""
    queue = Queue(name, store=store)
    names = await known_queues(store)
    if name not in names:
        raise NotFound(f"there is no queue {name!r} in {store.url}{near(name, names)}{hint}")
    return queue


def near(word: str, known: Iterable[str], nothing: str = "there is none yet") -> str:
    """A hint for an error: a similar name, or the existing names; `nothing` if there are none."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return f"; there is {some}" if some else f"; {nothing}"
