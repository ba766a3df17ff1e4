"""From a URL to a store. The only place that names concrete stores."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any, Final, cast
from urllib.parse import SplitResult, urlsplit

from ..errors import InvalidOption, StoreRefused
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
}
_CLIENTS: Final = ("redis", "valkey")
"""Packages whose clients are taken instead of a URL."""


def connect(url: str | object | None = None, *, create: bool = True) -> Store:
    """A store to share between queues; nothing connects until it is used.

    Instead of a URL it takes a client of redis-py: the store makes connections of its own as the client would, and
    never touches those of the client.

    Without a URL: `$ROPEWAY_URL`, or the file `ropeway.db` in the current folder. With `create=False` a store that does
    not exist yet is not made: `StoreMissing` is raised, when it is first used at the latest.
    """
    url = url or os.environ.get("ROPEWAY_URL") or DEFAULT_URL
    if not isinstance(url, str):
        if type(url).__module__.partition(".")[0] not in _CLIENTS:
            raise InvalidOption("url", f"cannot be {url!r}: use text such as {DEFAULT_URL!r}")
        return cast(Store, _store("redis").from_client(url))
    return cast(Store, _store_for(url).from_url(url, create=create))


def _store_for(url: str) -> Any:
    scheme = parts_of(url).scheme
    if scheme not in _STORES:
        base, plus, driver = scheme.partition("+")
        if plus and base in _STORES:
            raise InvalidOption("url", f"cannot begin with {scheme}://: leave out '+{driver}', as in {base}://")
        if not scheme:
            raise InvalidOption("url", f"cannot be {_shown(url)!r}: a file is named as in sqlite:///{_shown(url)}")
        known = ", ".join(f"{scheme}://" for scheme in _STORES)
        raise InvalidOption("url", f"{_shown(url)!r} names no store that this Ropeway knows; it knows {known}")
    return _store(scheme)


def parts_of(url: str) -> SplitResult:
    """For stores, who read more of it than its scheme. What cannot be taken apart is an option that is wrong."""
    try:
        return urlsplit(url)
    except ValueError:
        # Not in its own words, which may repeat the password.
        remedy = "its host cannot be read; an IPv6 address has brackets on both sides, as in [::1]"
        raise InvalidOption("url", f"cannot be {_shown(url)!r}: {remedy}") from None


def _shown(url: str) -> str:
    """Without what may be a password."""
    return re.sub(r"(//[^:]*):.*@", r"\1:***@", url)


def _store(scheme: str) -> Any:
    module, name = _STORES[scheme]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        extra = module.rpartition(".")[2]
        raise StoreRefused(
            f"{scheme}://", f'{missing.name} is not installed: pip install "ropeway[{extra}]"'
        ) from missing
