"""Parsing of `postgresql:` URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Self
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import Error

from ...errors import InvalidOption
from ...showing import error_text, shown
from ...store.url import LONGEST_HOST, checked_host, checked_port, parts_of

DEFAULT_SCHEMA: Final = "ropeway"
_OURS: Final = ("schema", "timeout", "listen", "migrate")
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}")


class Target(msgspec.Struct, frozen=True):
    """A parsed URL: where the server is, and how this handle uses it."""

    url: str
    """Without the password."""
    conninfo: str
    """For libpq, which knows the rest: hosts, TLS, service files and the `PG...` environment variables."""
    schema: str = DEFAULT_SCHEMA
    timeout: float = 10.0
    """Seconds after which a server that does not answer counts as gone."""
    listens: bool = True
    """False polls instead, as it is done behind a pooler in any case."""
    migrates: bool = True
    """False leaves making and migrating the schema to `ropeway migrate`."""
    creates: bool = True
    """False does not make a schema that is not there."""

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        """`postgresql://user:password@host:5432/database?schema=ropeway`, with the parameters of libpq and ours."""
        parts = parts_of(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        ours = {option: value for option, value in given if option in _OURS}
        rest = urlencode([pair for pair in given if pair[0] not in _OURS], quote_via=quote)
        safe = without_password(url)
        conninfo = parts._replace(scheme="postgresql", query=rest).geturl()
        if not parts.netloc:
            # `geturl` leaves out the two slashes that libpq wants.
            conninfo = "postgresql://" + conninfo.removeprefix("postgresql:").removeprefix("//")
        try:
            _check_hosts(conninfo_to_dict(conninfo))
        except Error as wrong:
            raise InvalidOption("url", f"cannot be {shown(safe)}: {error_text(wrong)}") from None
        except ValueError:
            remedy = f"a host has at most {LONGEST_HOST} letters, a port is 1 to 65535, and all is UTF-8"
            raise InvalidOption("url", f"cannot be {shown(safe)}: {remedy}") from None
        return cls(
            safe,
            conninfo,
            _schema(ours.get("schema", DEFAULT_SCHEMA)),
            _timeout(ours.get("timeout", "10")),
            _switch(ours, "listen"),
            _switch(ours, "migrate"),
            create,
        )


def _check_hosts(said: Mapping[str, Any]) -> None:
    """Raises `ValueError` for a host or port that cannot be. A host that begins with / or @ is a socket folder."""
    for host in str(said.get("host") or "").split(","):
        if not host.startswith(("/", "@")):
            checked_host(host)
    for port in str(said.get("port") or "").split(","):
        if port:
            checked_port(port)


def without_password(url: str) -> str:
    parts = parts_of(url)
    login, _, places = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    netloc = f"{user}:***@{places}" if colon else parts.netloc
    query = re.sub(r"(^|&)(password|sslpassword)=[^&]*", r"\1\2=***", parts.query)
    return (
        url if (netloc, query) == (parts.netloc, parts.query) else parts._replace(netloc=netloc, query=query).geturl()
    )


def _schema(given: str) -> str:
    if not _SCHEMA.fullmatch(given) or given.startswith("pg_"):
        raise InvalidOption(
            "schema", f"cannot be {shown(given)}: use 1 to 48 small letters, digits or '_', not a digit or 'pg_' first"
        )
    return given


def _timeout(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise InvalidOption("timeout", f"cannot be {shown(given)}: use seconds, more than 0 and at most 3600")
    return seconds


def _switch(options: dict[str, str], option: str) -> bool:
    given = options.get(option, "on")
    if given not in ("on", "off"):
        raise InvalidOption(option, f"cannot be {shown(given)}: use on or off")
    return given == "on"
