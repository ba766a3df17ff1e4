"""The SQL of the `sql` folder: migrations of the tables, and the functions that verbs call.

    schema ropeway
      tables                      one version, raised by migrations; `version` has its number
      claim_1a2b3c4d(...), ...    the functions of one release of Ropeway
      claim_5e6f7a8b(...), ...    those of another, side by side

The names of a set of functions end in a digest of its text, so that every release calls its own. While a new one is
rolled out, or taken back, the processes of both work on the same tables: no function is ever replaced under a process
that calls it. A process that opens a schema installs its set if that is missing. A set that is not used for long is
dropped (`sql/lib/drop_unused_functions.sql`).

The files say `ropeway.` for the schema, `ropeway.name(` for a function, and `{{NAME}}` for a constant of the domain:
another schema, the digest and the values of `placeholders.py` are filled in when they are read. Migrations have no
placeholders: they must not change when the domain does.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from ...store.templates import fill
from .placeholders import values
from .target import DEFAULT_SCHEMA

_FOLDER: Final = files("ropeway.stores.postgres") / "sql"
_SCHEMA: Final = re.compile(rf"(?<!')\b{DEFAULT_SCHEMA}\.")
_IN_TEXT: Final = f"'{DEFAULT_SCHEMA}."
_CALL: Final = re.compile(rf"\b{DEFAULT_SCHEMA}\.([a-z_]+)\(")


@cache
def migrations(schema: str = DEFAULT_SCHEMA) -> tuple[str, ...]:
    """The scripts that make a schema of version n one of version n + 1, from version 0 on."""
    first, *others = (
        in_schema(f"{script}\nUPDATE {DEFAULT_SCHEMA}.version SET number = {number};\n", schema)
        for number, script in enumerate(_read(_FOLDER / "migrations").values(), 1)
    )
    return f"{_create_schema(schema)}\n\n{first}", *others


@cache
def functions(schema: str = DEFAULT_SCHEMA) -> str:
    """The script that installs this release's functions."""
    texts = [_with_own_name(name, text) for name, text in _functions().items()]
    return in_schema("\n".join([*texts, _INSTALLED.format(digest=digest())]), schema)


_INSTALLED: Final = """
INSERT INTO ropeway.function_set (digest, used_at) VALUES ('{digest}', ropeway.clock())
ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at;
SELECT ropeway.drop_unused_functions();
"""


@cache
def digest() -> str:
    """The digest of this release's functions."""
    return sha256("\n".join(_functions().values()).encode()).hexdigest()[:8]


def function(name: str, schema: str) -> str:
    """The full name of one of this release's functions."""
    return f"{quoted(schema)}.{name}_{digest()}"


def in_schema(sql: str, schema: str) -> str:
    """Statements that say `ropeway.`, for another schema; the functions that they call are those of this release."""
    own = _CALL.sub(lambda call: f"{DEFAULT_SCHEMA}.{_full(call[1])}(", sql)
    if schema == DEFAULT_SCHEMA:
        return own
    return _SCHEMA.sub(f"{quoted(schema)}.", own).replace(_IN_TEXT, f"'{schema}.")


def quoted(schema: str) -> str:
    """The schema as an identifier: it may be a keyword, such as `user`. Its letters were checked with the URL."""
    return schema if schema == DEFAULT_SCHEMA else f'"{schema}"'


def _create_schema(schema: str) -> str:
    """Without IF NOT EXISTS, which requires the right to create schemas even if this one exists."""
    return f"DO $$ BEGIN IF to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {quoted(schema)}; END IF; END $$;"


def _full(name: str) -> str:
    if name not in _functions():
        raise LookupError(f"there is no file for the function {name!r} in the sql folder")
    return f"{name}_{digest()}"


def _with_own_name(name: str, text: str) -> str:
    """Puts in the full name where a function qualifies a parameter by its own name."""
    return re.sub(rf"(?<![.\w]){name}\.(?=[a-z])", f"{_full(name)}.", text)


@cache
def _functions() -> dict[str, str]:
    """The text of each function by name; those that others call come first."""
    rules = values()
    return {name: fill(text, rules) for name, text in {**_read(_FOLDER / "lib"), **_read(_FOLDER)}.items()}


def _read(folder: Traversable) -> dict[str, str]:
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in found}
