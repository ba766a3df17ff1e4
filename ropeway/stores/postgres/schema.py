"""Checks whether the schema fits this release; creates and migrates it, and installs the functions."""

from __future__ import annotations

from typing import Final

import msgspec
from psycopg import Error

from ...errors import StoreMissing, StoreRefused, StoreVersion
from .failures import code_of
from .link import Link, Statement
from .parameters import number, text
from .statements import digest, functions, in_schema, migrations
from .target import Target

_IS_THERE: Final = Statement(
    "SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE nspname = $1 AND relname = 'version')"
)
LOCK: Final = 7_024_917_363
"""Key of the advisory lock that a migration holds: in one database only one runs at a time."""
RECORDED_FOR: Final = 24 * 3600
"""Seconds until the use of a set of functions is recorded again."""


class Found(msgspec.Struct, frozen=True):
    """The state of a schema on the server."""

    version: int
    oldest: int
    """The oldest version whose functions work on its tables."""
    has_functions: bool
    """True if the functions of this release are installed."""
    is_use_recorded: bool = True

    @property
    def is_too_new(self) -> bool:
        return self.oldest > newest()

    @property
    def is_older(self) -> bool:
        return self.version < newest()

    def scripts(self, schema: str) -> list[str]:
        """The scripts that bring it to this release."""
        return [*migrations(schema)[self.version :], *([] if self.has_functions else [functions(schema)])]


def newest() -> int:
    """The version of the tables that this release makes."""
    return len(migrations())


NOTHING: Final = Found(0, 0, has_functions=False)


async def find_schema(link: Link, target: Target) -> Found | None:
    """Reads the state of the schema; None if it does not exist or does not contain our tables."""
    # Not `to_regclass`, which may answer from a snapshot of before another process made the schema.
    [(is_there,)] = await link.ask(_IS_THERE, (text(target.schema),))
    if not is_there:
        return None
    sql = (
        "SELECT number, oldest, used_at IS NOT NULL,"
        " coalesce(used_at > extract(epoch FROM clock_timestamp()) * 1000 - $2::bigint * 1000, false)"
        " FROM ropeway.version LEFT JOIN ropeway.function_set ON digest = $1"
    )
    rows = await link.ask(Statement(in_schema(sql, target.schema)), (text(digest()), number(RECORDED_FOR)))
    return Found(*rows[0]) if rows else NOTHING


async def check_schema(link: Link, target: Target) -> None:
    """Creates or migrates the schema and installs the functions, if that is needed. Raises if it is not allowed."""
    found = await find_schema(link, target)
    refuse_newer(target, found)
    if found is not None and not found.scripts(target.schema):
        if not found.is_use_recorded:
            await record_use(link, target)
        return
    if found is None and not target.creates:
        raise StoreMissing(target.url, f"it has no schema {target.schema!r}: check the URL, or add a first job there")
    if not target.migrates:
        raise StoreRefused(target.url, f"it {_lacks(target, found)}: run `ropeway migrate`")
    await _migrate(link, target)


async def record_use(link: Link, target: Target) -> bool:
    """Records that this release's functions are used, so that they are not dropped; False if they were."""
    sql = (
        "UPDATE ropeway.function_set SET used_at = extract(epoch FROM clock_timestamp()) * 1000"
        " WHERE digest = $1 RETURNING digest"
    )
    return bool(await link.ask(Statement(in_schema(sql, target.schema)), (text(digest()),)))


def refuse_newer(target: Target, found: Found | None) -> None:
    if found is not None and found.is_too_new:
        raise StoreVersion(
            target.url,
            f"its schema has version {found.version}, which needs a Ropeway that knows {found.oldest}, and this one "
            f"knows {newest()}: upgrade Ropeway here too, or use another schema",
        )


def _lacks(target: Target, found: Found | None) -> str:
    if found is None:
        return f"has no schema {target.schema!r}"
    if found.is_older:
        return f"has version {found.version} of {newest()}"
    return "lacks the functions of this release of Ropeway"


async def _migrate(link: Link, target: Target) -> None:
    """Runs the scripts in one transaction under a lock: of many processes that start at once, one does it."""
    await link.run("BEGIN")
    try:
        await link.run(f"SELECT pg_advisory_xact_lock({LOCK})")
        found = await find_schema(link, target)
        refuse_newer(target, found)
        for script in (found or NOTHING).scripts(target.schema):
            await link.run(script)
        await link.run("COMMIT")
    except Error as error:
        if code_of(error) == "42501":
            raise StoreRefused(
                target.url,
                f"this user may not make or migrate the schema {target.schema!r}: run `ropeway migrate` as one who may "
                f"({' '.join(str(error).split())})",
            ) from error
        raise
    finally:
        if link.is_up and not link.is_idle:
            await link.run("ROLLBACK")
