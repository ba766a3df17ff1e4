"""From a URL to the addresses that may be connected to: the name is resolved once, and every address is checked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import TypeAlias

from ..job.web_addresses import address_problem
from ..job.web_urls import BadUrl, WebUrl, is_allowed, url_problem, web_url
from .failures import Refused, Unreachable

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host name, in the order in which to try them."""


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


async def system_resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
