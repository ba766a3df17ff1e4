"""Reads URLs of Redis: addresses, credentials and parameters."""

from __future__ import annotations

import re
import ssl
from typing import Final, Literal, Self, TypeAlias
from urllib.parse import parse_qsl, unquote

import msgspec

from ...errors import InvalidOption
from ...showing import shown
from ...store.tls import tls_context
from ...store.url import LONGEST_HOST, checked_host, checked_port, digits, parts_of

Kind: TypeAlias = Literal["server", "cluster", "sentinel"]

_SUFFIXES: Final[dict[str, Kind]] = {"": "server", "+cluster": "cluster", "+sentinel": "sentinel"}
_TLS: Final = {"redis": False, "rediss": True, "valkey": False, "valkeys": True}
SCHEMES: Final[dict[str, tuple[Kind, bool]]] = {
    f"{scheme}{suffix}": (kind, uses_tls) for scheme, uses_tls in _TLS.items() for suffix, kind in _SUFFIXES.items()
}
"""What each leads to, and whether it speaks TLS."""
PORTS: Final[dict[Kind, int]] = {"server": 6379, "cluster": 6379, "sentinel": 26379}
DEFAULT_PREFIX: Final = "ropeway"
LAST_DATABASE: Final = 2**31 - 1
_KNOWN: Final = ("prefix", "timeout", "allow_eviction", "ca_file", "cert_file", "key_file", "unix")
_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Target(msgspec.Struct, frozen=True):
    url: str
    """Without the password."""
    host: str = "localhost"
    port: int = 6379
    path: str | None = None
    """Of a Unix socket, instead of host and port."""
    username: str | None = None
    password: str | None = None
    database: int = 0
    uses_tls: bool = False
    ca_file: str | None = None
    """Whom alone to trust; without it, whom the system trusts."""
    cert_file: str | None = None
    """What we show of ourselves, if the server wants to know."""
    key_file: str | None = None
    prefix: str = DEFAULT_PREFIX
    timeout: float = 10.0
    """Seconds after which a server that does not answer counts as gone."""
    allows_eviction: bool = False
    kind: Kind = "server"
    seeds: tuple[tuple[str, int], ...] = ()
    """Some nodes of a cluster, or the sentinels; whom they name is asked then."""
    service: str = ""
    """What the sentinels call the primary."""

    @classmethod
    def from_url(cls, url: str) -> Self:
        """`redis://user:password@host:6379/0?prefix=shop`; `redis:///0?unix=/run/redis.sock` for a Unix socket.

        `redis+cluster://host:6379,other:6379`; `redis+sentinel://host:26379,other:26379/service/0`.
        """
        parts = parts_of(url)
        safe = _without_password(url)
        if parts.scheme not in SCHEMES:
            raise InvalidOption("url", f"cannot be {shown(safe)}: use redis://host:6379/0 or rediss:// for TLS")
        kind, uses_tls = SCHEMES[parts.scheme]
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        for option in options:
            if option not in _KNOWN:
                raise InvalidOption(option, f"is unknown in {shown(safe)}; there are {', '.join(_KNOWN)}")
        login, _, places = parts.netloc.rpartition("@")
        user, colon, password = login.partition(":")
        service, _, number = parts.path.strip("/").rpartition("/") if kind == "sentinel" else ("", "", parts.path[1:])
        if kind == "sentinel" and not service:
            service, number = number, "0"
        try:
            seeds = tuple(_place(place, PORTS[kind]) for place in places.split(","))
            database = digits(number.strip("/") or "0", 0, LAST_DATABASE)
            timeout = float(options.get("timeout", "10"))
            # Server, password and paths are sent as UTF-8.
            unquote(url).encode()
        except ValueError:
            raise InvalidOption(
                "url",
                f"cannot be {shown(safe)}: a host has at most {LONGEST_HOST} letters, a port is 1 to 65535, "
                "database and timeout are numbers from 0, an IPv6 address is [::1]",
            ) from None
        if not 0 < timeout <= 3600 or (kind == "cluster" and database):
            raise InvalidOption(
                "url", f"cannot be {shown(safe)}: the timeout is 0 to 3600 s, the database of a cluster 0"
            )
        if kind == "sentinel" and not service:
            raise InvalidOption(
                "url", f"cannot be {shown(safe)}: name the service, as in redis+sentinel://host:26379/main/0"
            )
        return cls(
            safe,
            *seeds[0],
            path=options.get("unix"),
            username=unquote(user) or None,
            password=unquote(password) if colon else None,
            database=database,
            uses_tls=uses_tls,
            ca_file=options.get("ca_file"),
            cert_file=options.get("cert_file"),
            key_file=options.get("key_file"),
            prefix=_prefix(options.get("prefix", DEFAULT_PREFIX)),
            timeout=timeout,
            allows_eviction=_switch(options, "allow_eviction"),
            kind=kind,
            seeds=seeds,
            service=service,
        )

    def at(self, host: str, port: int) -> Self:
        """The same target at the address of one of its servers."""
        return msgspec.structs.replace(self, host=host, port=port, kind="server")

    def nameless(self) -> Self:
        """The same place without logging in."""
        return msgspec.structs.replace(self, username=None, password=None, database=0)

    @property
    def address(self) -> str:
        return self.path or f"{self.host}:{self.port}"

    def tls(self) -> ssl.SSLContext | None:
        if not self.uses_tls:
            return None
        return tls_context(self.ca_file, self.cert_file, self.key_file)


def _place(given: str, port: int) -> tuple[str, int]:
    host, colon, number = given.rpartition(":")
    if not colon or given.endswith("]"):
        host, number = given, str(port)
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not is_bracketed and not {*"[:]"}.isdisjoint(host):
        raise ValueError(host)
    return checked_host(host.strip("[]") or "localhost"), checked_port(number)


def _without_password(url: str) -> str:
    parts = parts_of(url)
    login, _, places = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    return parts._replace(netloc=f"{user}:***@{places}").geturl() if colon else url


def _prefix(given: str) -> str:
    if not _PREFIX.fullmatch(given):
        raise InvalidOption("prefix", f"cannot be {shown(given)}: use 1 to 64 letters, digits, '.', '_' or '-'")
    return given


def _switch(options: dict[str, str], option: str) -> bool:
    given = options.get(option, "0")
    if given not in ("0", "1"):
        raise InvalidOption(option, f"cannot be {shown(given)}: use 1 or 0")
    return given == "1"
