"""The SQL of the `sql` folder: migrations, and one function for each verb.

The files say `ropeway.` for the schema; another name takes its place when it is asked for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.abc import Traversable
from importlib.resources import files
from typing import Final

from .target import DEFAULT_SCHEMA

_FOLDER: Final = files("ropeway.stores.postgres") / "sql"
_SCHEMA: Final = re.compile(rf"\b{DEFAULT_SCHEMA}\.")


@cache
def migrations(schema: str = DEFAULT_SCHEMA) -> tuple[str, ...]:
    """The scripts that make a schema of version n one of version n + 1, from version 0 on.

    The functions are made anew by the last of them, whichever version it starts from.
    """
    scripts = [*_texts(_FOLDER / "migrations")]
    scripts[0] = f"CREATE SCHEMA IF NOT EXISTS {DEFAULT_SCHEMA};\n\n{scripts[0]}"
    scripts[-1] = "\n".join([scripts[-1], *_texts(_FOLDER / "lib"), *_texts(_FOLDER)])
    return tuple(
        in_schema(f"{script}\nUPDATE {DEFAULT_SCHEMA}.version SET number = {number};\n", schema)
        for number, script in enumerate(scripts, 1)
    )


def in_schema(sql: str, schema: str) -> str:
    """`schema` was checked when the URL was read: it needs no quotes."""
    if schema == DEFAULT_SCHEMA:
        return sql
    return _SCHEMA.sub(f"{schema}.", sql).replace(
        f"SCHEMA IF NOT EXISTS {DEFAULT_SCHEMA};", f"SCHEMA IF NOT EXISTS {schema};"
    )


def _texts(folder: Traversable) -> list[str]:
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text("utf-8") for file in found]
