"""A parsed `sqlite:` URL."""

from __future__ import annotations

import os
from typing import Final, Self
from urllib.parse import parse_qsl, unquote

import msgspec

from ...errors import InvalidOption
from ...showing import shown
from ...store.url import parts_of

_KNOWN: Final = ("durability", "allow_network")


class Target(msgspec.Struct, frozen=True):
    path: str
    """Absolute path, which a later change of the working directory does not affect."""
    url: str
    """The URL with an absolute path."""
    is_durable: bool = True
    """True if answers wait for the disk."""
    allows_network: bool = False
    creates: bool = True
    """True if a missing file is created."""
    patience: float = 30.0
    """Seconds that a call waits while other processes write."""
    vfs: str | None = None
    """SQLite's VFS; tests replace it by one that fails."""

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        """Three slashes for a path from the current folder, four for one from the root."""
        parts = parts_of(url)
        slash, path = parts.path[:1], unquote(parts.path[1:])
        if parts.scheme != "sqlite" or parts.netloc or slash != "/" or not path or not _is_path(path):
            raise InvalidOption(
                "url", f"cannot be {shown(url)}: use sqlite:///file.db, or sqlite:////folder/file.db from the root"
            )
        if path == ":memory:":
            # SQLite's own word, and SQLAlchemy's; here it would be a file of that name.
            raise InvalidOption("url", f"cannot be {shown(url)}: for jobs in memory use memory://")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        for option in options:
            if option not in _KNOWN:
                raise InvalidOption(option, f"is unknown in {shown(url)}; there are {', '.join(_KNOWN)}")
        place = os.path.abspath(path)  # noqa: PTH100 - pathlib would keep ".." in it
        return cls(
            place,
            url if path.startswith("/") else _url_of(place, parts.query),
            _one_of(options, "durability", {"full": True, "fast": False}, default="full"),
            _one_of(options, "allow_network", {"1": True, "0": False}, default="0"),
            create,
        )


def _is_path(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _url_of(path: str, query: str) -> str:
    for letter in "%?#":
        path = path.replace(letter, f"%{ord(letter):X}")
    return f"sqlite:///{path}?{query}" if query else f"sqlite:///{path}"


def _one_of(options: dict[str, str], option: str, choices: dict[str, bool], default: str) -> bool:
    given = options.get(option, default)
    try:
        return choices[given]
    except KeyError:
        raise InvalidOption(option, f"cannot be {shown(given)}: use {' or '.join(choices)}") from None
