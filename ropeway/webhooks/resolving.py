"""From a URL to the addresses that may be connected to: the name is resolved once, and every address is checked."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import Final, TypeAlias

from ..job.web_addresses import address_problem
from ..job.web_urls import BadUrl, WebUrl, is_allowed, url_problem, web_url
from .failures import Refused, Unreachable

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host name, in the order in which to try them."""


MOST_LOOKUPS: Final = 32
"""Most names that are looked up at once; others wait."""


def checked_url(text: str, allowed: Iterable[str]) -> WebUrl:
    try:
        url = web_url(text)
    except BadUrl as bad:
        raise Refused(f"the URL {bad}") from None
    if (problem := url_problem(url, allowed)) is not None:
        raise Refused(f"the URL {problem}")
    return url


async def addresses_of(url: WebUrl, allowed: Iterable[str], resolve: Resolve) -> list[str]:
    """All addresses of the URL's host; refused if any of them is not public, unless the host is allowed by name."""
    if url.address is not None:
        return [str(url.address)]  # `checked_url` has seen it.
    try:
        found = await resolve(url.host, url.port)
    except OSError as error:
        raise Unreachable(f"its name cannot be resolved: {error.strerror or error}") from None
    if not found:
        raise Unreachable("its name has no address")
    if not is_allowed(url, allowed):
        for address in found:
            if (why := address_problem(ip_address(address))) is not None:
                raise Refused(f"the name of its host leads to an address that is not public ({why})")
    return found


class SystemResolver:
    """Resolves names as the system does, each in a thread of its own. Belongs to one event loop.

    A lookup may hang for as long as the system likes: in threads that others wait for, such as those of asyncio, it
    would hold up the application's own calls, and the end of the program.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._places = asyncio.Semaphore(MOST_LOOKUPS)

    async def __call__(self, host: str, port: int) -> list[str]:
        await self._places.acquire()
        answer: asyncio.Future[list[str]] = self._loop.create_future()
        try:
            threading.Thread(
                target=self._look_up, args=(host, port, answer), name="ropeway-resolve", daemon=True
            ).start()
        except RuntimeError:
            self._places.release()
            raise Unreachable("its name cannot be resolved: no more threads can be started") from None
        return await answer

    def _look_up(self, host: str, port: int, answer: asyncio.Future[list[str]]) -> None:
        found: list[str] | OSError
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(address[0]) for *_, address in infos))
        except OSError as error:
            found = error
        except UnicodeError as error:
            found = OSError(str(error))
        with suppress(RuntimeError):  # The loop may be closed: then nobody waits.
            self._loop.call_soon_threadsafe(self._finish, answer, found)

    def _finish(self, answer: asyncio.Future[list[str]], found: list[str] | OSError) -> None:
        self._places.release()
        if answer.done():
            return  # Whoever asked has given up.
        if isinstance(found, OSError):
            answer.set_exception(found)
        else:
            answer.set_result(found)
