"""The SQL of the `sql` folder, read once.

A file is named as its verb. It holds statements, each after a line `-- statement: name`. Constants of the domain, such
as the names of states, are written as `{{NAME}}`, and come from `placeholders.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from ...store.templates import fill
from .placeholders import DOMAIN, PLACEHOLDERS

_MARK: Final = re.compile(r"^-- statement: (\S+)$", re.MULTILINE)
_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)
_FOLDER: Final = files("ropeway.stores.sqlite") / "sql"


@cache
def statements(verb: str) -> Mapping[str, str]:
    """The statements of one file, by name."""
    _, *parts = _MARK.split(fill((_FOLDER / f"{verb}.sql").read_text("utf-8"), PLACEHOLDERS))
    # Without comments: SQLite's cache of prepared statements compares the whole text.
    return {name: _COMMENT.sub("", text).strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def migrations() -> list[str]:
    """The scripts that make a file of version n one of version n + 1, from version 0 on."""
    scripts = sorted((_FOLDER / "migrations").iterdir(), key=lambda script: script.name)
    return [fill(script.read_text("utf-8"), DOMAIN) for script in scripts if script.name.endswith(".sql")]
