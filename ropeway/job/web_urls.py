"""Checks of the URLs of webhooks, which may come from strangers.

Forms that other programs read in different ways are refused, not mended: user names, numbers in place of an address,
control characters. What a name resolves to is checked when something is sent (`webhooks/resolving.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, NamedTuple

from .web_addresses import Address, address_problem

LONGEST_URL: Final = 2_000
_URL: Final = re.compile(r"(https?)://([^/?#]*)([/?][^#]*)?", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
PORTS: Final = {"http": 80, "https": 443}


class BadUrl(ValueError):
    """The text says why a URL is refused. It does not repeat the URL, which may hold secrets."""


class WebUrl(NamedTuple):
    scheme: str
    host: str
    """In lower case, without brackets."""
    port: int
    target: str
    """Path and query."""
    address: Address | None
    """If the host is one."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def web_url(text: str) -> WebUrl:
    """Takes a URL apart, or raises `BadUrl`."""
    if len(text) > LONGEST_URL:
        raise BadUrl(f"is longer than {LONGEST_URL:,} characters")
    if not all("!" <= character <= "~" for character in text) or "\\" in text:
        raise BadUrl("may not have spaces, control characters, backslashes or letters beyond ASCII: encode them")
    if (parts := _URL.fullmatch(text)) is None:
        raise BadUrl("has a fragment (#)" if "#" in text else "must begin with https://")
    scheme, authority, target = parts[1].lower(), parts[2].lower(), parts[3] or "/"
    if "@" in authority:
        raise BadUrl("may not have a user name or password: use the secret of the webhook, or its query")
    if (place := _AUTHORITY.fullmatch(authority)) is None:
        raise BadUrl("has no readable host")
    host, address = _host(place[1])
    port = int(place[2]) if place[2] else PORTS[scheme]
    if not 0 < port < 65_536:
        raise BadUrl("has a port that does not exist")
    return WebUrl(scheme, host, port, target if target.startswith("/") else f"/{target}", address)


def url_problem(url: WebUrl, allowed: Iterable[str]) -> str | None:
    """Why nothing is sent to this URL, as far as it is known without resolving its name; None if it may be."""
    if is_allowed(url, allowed):
        return None
    if url.scheme != "https":
        return "must begin with https://, unless its host is allowed by name (allow_hosts, ROPEWAY_WEBHOOK_ALLOW)"
    if url.host == "localhost" or url.host.endswith(".localhost"):
        return "is on this machine: allow the host by name (allow_hosts, ROPEWAY_WEBHOOK_ALLOW)"
    if url.address is not None and (why := address_problem(url.address)) is not None:
        return f"has an address that is not public ({why})"
    return None


def is_allowed(url: WebUrl, allowed: Iterable[str]) -> bool:
    """True if its host is allowed by name, with this port or with any."""
    return any(host in (url.host, f"{url.host}:{url.port}", f"[{url.host}]:{url.port}") for host in allowed)


def _host(text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except AddressValueError:
            raise BadUrl("has an IPv6 address that cannot be read") from None
        return str(address), address
    if not text or len(text) > 253 or _NAME.fullmatch(text) is None:
        raise BadUrl("has no valid host name: other alphabets are written as xn--...")
    name = text.rstrip(".")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        # Programs read 127.1, 0x7f.1, 0177.0.0.1 and 2130706433 as addresses too.
        try:
            return name, IPv4Address(name)
        except AddressValueError:
            raise BadUrl(
                "has a number in place of a host: write an IPv4 address as four numbers, as in 1.2.3.4"
            ) from None
    return name, None
