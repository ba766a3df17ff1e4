"""Reads `http:` and `https:` URLs: the address of a server, its token and parameters."""

from __future__ import annotations

import os
import re
import ssl
from typing import Final, Self
from urllib.parse import parse_qsl, unquote

import msgspec

from ...errors import InvalidOption
from ...showing import shown
from ...store.tls import tls_context
from ...store.url import LONGEST_HOST, checked_host, checked_port, parts_of

TOKEN: Final = "ROPEWAY_TOKEN"
"""The environment variable with the token, unless the URL has one."""
PORTS: Final = {"http": 80, "https": 443}
_KNOWN: Final = ("timeout", "ca_file", "cert_file", "key_file")
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,512}")


class Target(msgspec.Struct, frozen=True):
    url: str
    """Without the token."""
    scheme: str
    host: str
    port: int
    authority: str
    """The value of the Host header."""
    path: str = ""
    """The prefix under which the server is mounted, as in /jobs."""
    token: str | None = None
    ca_file: str | None = None
    """Whom alone to trust; without it, whom the system trusts."""
    cert_file: str | None = None
    """What we show of ourselves, if the server wants to know."""
    key_file: str | None = None
    timeout: float = 10.0
    """Seconds after which a server that does not answer counts as gone."""

    @classmethod
    def from_url(cls, url: str) -> Self:
        """`https://broker:8787`, with a path if it is mounted, and a token as in `https://rw_...@broker:8787`."""
        parts = parts_of(url)
        login, _, place = parts.netloc.rpartition("@")
        user, colon, password = login.partition(":")
        # A token can be given as either: some programs only have a field for a password.
        token = unquote(password if colon else user) or os.environ.get(TOKEN) or None
        safe = parts._replace(netloc=place, path=parts.path.rstrip("/")).geturl()
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        for option in options:
            if option not in _KNOWN:
                raise InvalidOption(option, f"is unknown in {shown(safe)}; there are {', '.join(_KNOWN)}")
        if token is not None and not _TOKEN.fullmatch(token):
            raise InvalidOption(
                "token", f"of {shown(safe)} has characters that no token has: check {TOKEN}, or the URL"
            )
        path = parts.path.rstrip("/")
        try:
            host, port = _place(place, PORTS[parts.scheme])
            timeout = _timeout(options.get("timeout", "10"))
            unquote(url).encode()
        except ValueError:
            raise InvalidOption(
                "url",
                f"cannot be {shown(safe)}: a host has at most {LONGEST_HOST} letters, a port is 1 to 65535, the "
                "timeout 0 to 3600 s, an IPv6 address is [::1]",
            ) from None
        if parts.fragment or not _PATH.fullmatch(path):
            raise InvalidOption("url", f"cannot be {shown(safe)}: its path has other characters, or it has a fragment")
        return cls(
            safe,
            parts.scheme,
            host,
            port,
            _authority(host, port, parts.scheme),
            path,
            token,
            options.get("ca_file"),
            options.get("cert_file"),
            options.get("key_file"),
            timeout,
        )

    def tls(self) -> ssl.SSLContext | None:
        return tls_context(self.ca_file, self.cert_file, self.key_file) if self.scheme == "https" else None


def _timeout(given: str) -> float:
    seconds = float(given)
    if not 0 < seconds <= 3600:
        raise ValueError(given)
    return seconds


def _place(given: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[^\[\]]+\]|[^:\[\]]+)(?::(.*))?", given, re.DOTALL)
    if found is None:
        raise ValueError(given)
    host = checked_host(found[1].strip("[]"))
    return host if ":" in host else host.encode("idna").decode(), checked_port(found[2]) if found[2] else port


def _authority(host: str, port: int, scheme: str) -> str:
    name = f"[{host}]" if ":" in host else host
    return name if port == PORTS[scheme] else f"{name}:{port}"
