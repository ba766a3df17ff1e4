"""From a URL to a store. The only module that names concrete stores."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any, Final, cast
from urllib.parse import SplitResult, urlsplit

from ..errors import InvalidOption, StoreRefused
from ..job.choices import yes_or_no
from ..showing import on_one_line, shown
from .contract import Store

DEFAULT_URL: Final = "sqlite:///ropeway.db"

_STORES: Final[dict[str, tuple[str, str]]] = {
    "memory": ("ropeway.stores.memory", "MemoryStore"),
    "sqlite": ("ropeway.stores.sqlite", "SQLiteStore"),
    **dict.fromkeys(("postgresql", "postgres"), ("ropeway.stores.postgres", "PostgresStore")),
    **{
        f"{scheme}{suffix}": ("ropeway.stores.redis", "RedisStore")
        for scheme in ("redis", "rediss", "valkey", "valkeys")
        for suffix in ("", "+cluster", "+sentinel")
    },
    **dict.fromkeys(("http", "https"), ("ropeway.stores.remote", "RemoteStore")),
}
LONGEST_HOST: Final = 253
"""Most characters of a DNS name."""
_CLIENTS: Final = ("redis", "valkey")
"""Packages whose clients are accepted instead of a URL."""


def connect(url: str | object | None = None, *, create: bool = True) -> Store:
    """A store to share between queues; nothing connects until it is used.

    Instead of a URL it takes a redis-py client: the store opens its own connections with the client's settings, and
    never uses those of the client.

    Without a URL: `$ROPEWAY_URL`, or the file `ropeway.db` in the current folder. With `create=False` a store that does
    not exist is not created: `StoreMissing` is raised, at the latest when it is first used.
    """
    yes_or_no("create", create)
    if url is None or isinstance(url, str):
        url = url or os.environ.get("ROPEWAY_URL") or DEFAULT_URL
        return cast(Store, _store_for(url).from_url(url, create=create))
    if str(type(url).__module__).partition(".")[0] not in _CLIENTS:
        raise InvalidOption("url", f"cannot be {shown(url)}: use text such as {DEFAULT_URL!r}")
    return cast(Store, _store("redis").from_client(url))


def _store_for(url: str) -> Any:
    scheme = parts_of(url).scheme
    if scheme not in _STORES:
        base, plus, driver = scheme.partition("+")
        if plus and base in _STORES:
            raise InvalidOption("url", f"cannot begin with {scheme}://: leave out '+{driver}', as in {base}://")
        safe = _without_password(url)
        if not scheme:
            raise InvalidOption("url", f"cannot be {shown(safe)}: a file is named as in sqlite:///{on_one_line(safe)}")
        known = ", ".join(f"{scheme}://" for scheme in _STORES)
        raise InvalidOption("url", f"{shown(safe)} names no store that this Ropeway knows; it knows {known}")
    return _store(scheme)


def parts_of(url: str) -> SplitResult:
    """Splits a URL; raises `InvalidOption` if that is impossible."""
    try:
        return urlsplit(url)
    except ValueError:
        # Not with the message of the ValueError, which may contain the password.
        remedy = "its host cannot be read; an IPv6 address has brackets on both sides, as in [::1]"
        raise InvalidOption("url", f"cannot be {shown(_without_password(url))}: {remedy}") from None


def checked_host(host: str) -> str:
    """Raises `ValueError` for a host name that no resolver accepts."""
    if len(host) > LONGEST_HOST or not host.isprintable() or " " in host:
        raise ValueError(host)
    # As Python's resolver does: refuses a label that is empty, too long or has invalid characters.
    host.encode("idna")
    return host


def checked_port(text: str) -> int:
    """Raises `ValueError` for anything but a port number."""
    return digits(text, 1, 65_535)


def digits(text: str, least: int, most: int) -> int:
    """Stricter than `int`: no signs, underscores, digits of other scripts, or thousands of digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and least <= int(text) <= most):
        raise ValueError(text)
    return int(text)


def _without_password(url: str) -> str:
    # Of a server of ours, a token may stand in the place of the user.
    url = re.sub(r"^(https?://).*@", r"\1***@", url, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(r"(//[^:]*):.*@", r"\1:***@", url, flags=re.DOTALL)


def _store(scheme: str) -> Any:
    module, name = _STORES[scheme]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        extra = module.rpartition(".")[2]
        raise StoreRefused(
            f"{scheme}://", f'{missing.name} is not installed: pip install "ropeway[{extra}]"'
        ) from missing
