"""Hosts and origins: who may be asked for under which name, and which web pages may ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from .problems import Refused

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
ANY: Final = "*"
PREFLIGHT_SECONDS: Final = "600"


class Origins:
    """Checks the `Host` and `Origin` of requests.

    A page of another site may point its own name to 127.0.0.1 (DNS rebinding), so a name that was not allowed is
    refused, and so are requests of other origins that would change something.
    """

    def __init__(self, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK_NAMES, *hosts))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        if ANY in self._hosts:
            return
        host = _host_of(headers.get(b"host", b""))
        if host not in self._hosts:
            raise Refused(
                421,
                "unknown-host",
                "this server does not answer under that name: allow it by --allowed-host, or by hosts=[...]",
            )

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuses a browser's request of another site; programs send no `Origin`."""
        origin = headers.get(b"origin")
        if origin is None and headers.get(b"sec-fetch-site", b"none") in (b"none", b"same-origin"):
            return
        text = (origin or b"").decode("latin-1").lower()
        if text in self._origins or (text and _place_of(text) == headers.get(b"host", b"").decode("latin-1")):
            return
        raise Refused(403, "foreign-origin", "requests of other sites' pages are not accepted")

    def preflight(self, method: str, headers: Mapping[bytes, bytes]) -> Response | None:
        if method != "OPTIONS" or b"access-control-request-method" not in headers or not self.headers(headers):
            return None
        allowed = {
            "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
            "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
            "access-control-max-age": PREFLIGHT_SECONDS,
        }
        return Response(b"", 204, allowed)

    def headers(self, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """The headers that let a page of an allowed origin read the answer; none for others."""
        origin = headers.get(b"origin")
        if origin is None or origin.decode("latin-1").lower() not in self._origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def _host_of(header: bytes) -> str:
    try:
        return urlsplit(f"//{header.decode('ascii')}").hostname or ""
    except ValueError:
        return ""


def _place_of(origin: str) -> str:
    """Host and port of an origin; "" for `null`."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
