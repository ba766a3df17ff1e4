"""The SQL of the `sql` folder: migrations, and one function for each verb.

The files say `ropeway.` for the schema; another name takes its place when it is asked for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from .target import DEFAULT_SCHEMA

_FOLDER: Final = files("ropeway.stores.postgres") / "sql"
_SCHEMA: Final = re.compile(rf"(?<!')\b{DEFAULT_SCHEMA}\.")
_IN_TEXT: Final = f"'{DEFAULT_SCHEMA}."


@cache
def migrations(schema: str = DEFAULT_SCHEMA) -> tuple[str, ...]:
    """The scripts that make a schema of version n one of version n + 1, from version 0 on.

    The functions are made anew by the last of them, whichever version it starts from.
    """
    scripts = [*_texts(_FOLDER / "migrations")]
    scripts[-1] = "\n".join([scripts[-1], *_texts(_FOLDER / "lib"), *_texts(_FOLDER)])
    first, *others = (
        in_schema(f"{script}\nUPDATE {DEFAULT_SCHEMA}.version SET number = {number};\n", schema)
        for number, script in enumerate(scripts, 1)
    )
    return f"{_making(schema)}\n\n{first}", *others


def _making(schema: str) -> str:
    """Not IF NOT EXISTS, for which one needs the right to make schemas even if this one is there."""
    return f"DO $$ BEGIN IF to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {quoted(schema)}; END IF; END $$;"


def in_schema(sql: str, schema: str) -> str:
    """Statements that say `ropeway.`, for another schema."""
    if schema == DEFAULT_SCHEMA:
        return sql
    return _SCHEMA.sub(f"{quoted(schema)}.", sql).replace(_IN_TEXT, f"'{schema}.")


def quoted(schema: str) -> str:
    """Its letters were checked when the URL was read; but it may be a word of SQL, such as `user`."""
    return schema if schema == DEFAULT_SCHEMA else f'"{schema}"'


def _texts(folder: Traversable) -> list[str]:
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text("utf-8") for file in found]
