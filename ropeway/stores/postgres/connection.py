"""Opening connections: the parameters of libpq, which server is accepted, and what a failure to connect means."""

from __future__ import annotations

import asyncio
import math
import os
from typing import Final

import msgspec
from psycopg import AsyncConnection, Error, OperationalError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ...errors import NotConnected
from .checks import check_server
from .failures import code_of, raise_typed, typed_error
from .link import Link
from .schema import check_schema
from .target import Target

FIRST_PAUSE: Final = 0.02
CONNECTING: Final = 2
"""Seconds for the first try to connect; a network that proves slow gets more."""
_USUAL: Final[dict[str, str | int]] = {
    "application_name": "ropeway",
    "client_encoding": "utf8",
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


def conninfo_of(target: Target, failures: int = 0) -> str:
    """The target's connection string with our defaults; each failure in a row doubles the time to connect."""
    given = {name for name, value in conninfo_to_dict(target.conninfo).items() if value is not None}
    ours = {
        **_USUAL,
        "connect_timeout": max(CONNECTING, min(2 ** min(failures, 8), math.ceil(target.timeout))),
        # Ends a connection that nothing reaches, also while a statement of the caller's own is under way.
        "tcp_user_timeout": math.ceil(target.timeout * 1000),
    }
    return make_conninfo(target.conninfo, **{name: value for name, value in ours.items() if name not in given})


async def open_link(target: Target, failures: int = 0) -> Link:
    """Connects and checks the server. Raises Ropeway's errors."""
    link: Link | None = None
    try:
        async with asyncio.timeout(target.timeout):
            connection = await AsyncConnection.connect(conninfo_of(target, failures), autocommit=True)
        # The checks have as long as any call.
        link = Link(connection, target.timeout)
        await check_server(link, target)
        return link
    except BaseException as error:
        if link is not None:
            link.abort()
        raise_if_unreachable(target, error)
        raise_typed(target.url, error)
        raise


def raise_if_unreachable(target: Target, error: BaseException) -> None:
    """Raises `NotConnected` for an error of connecting, unless the server itself refused the login."""
    if isinstance(error, TimeoutError) or (isinstance(error, OperationalError) and code_of(error) is None):
        what = f"no answer within {target.timeout:g} s" if isinstance(error, TimeoutError) else _said(error)
        raise NotConnected(target.url, f"it cannot be reached: {what}") from error


def _said(error: OperationalError) -> str:
    """Libpq's message. It does not mention a shortage of file descriptors, so that is tried here."""
    what = " ".join(str(error).split())
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as shortage:
        return f"{what} ({shortage.strerror}; close some, or raise the limit: ulimit -n)"
    return what


async def migrate(target: Target) -> None:
    """Brings the schema to this release, also with `migrate=off` in the URL."""
    link = await open_link(target)
    try:
        await check_schema(link, msgspec.structs.replace(target, migrates=True, creates=True))
    except Error as error:
        raise typed_error(target.url, error) from error
    finally:
        link.abort()
