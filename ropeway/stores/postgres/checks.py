"""What is asked of a server before jobs are trusted to it, and making or migrating the schema."""

from __future__ import annotations

from typing import Final

from psycopg import Error

from ...errors import StoreMissing, StoreReadOnly, StoreRefused, StoreVersion
from .failures import code_of
from .link import Link, Statement
from .parameters import text
from .statements import in_schema, migrations
from .target import Target

OLDEST: Final = 14
_SERVER: Final = Statement(
    "SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',"
    " current_setting('server_version_num')::integer, current_setting('server_encoding'),"
    " current_setting('default_transaction_isolation')"
)
_IS_THERE: Final = Statement(
    "SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE nspname = $1 AND relname = 'version')"
)
_READ_COMMITTED: Final = "read committed"
_SESSION: Final = (
    # A verb looks again after it had to wait for a lock, and must see what was done meanwhile.
    f"SET default_transaction_isolation = '{_READ_COMMITTED}';"
    # A statement that waits for a lock must not wait for ever on behalf of somebody who is gone.
    "SET client_connection_check_interval = '5s'"
)
LOCK: Final = 7_024_917_363
"""Of migrations, in the server's space of advisory locks: those of all databases' schemas take turns."""


async def check_server(link: Link, target: Target) -> None:
    """Refuses a server that cannot keep jobs, and notices a pooler between it and us."""
    link.prepares = False
    [(backend, is_standby, is_read_only, version, encoding, isolation)] = await link.ask(_SERVER)
    link.prepares = backend == link.backend
    if version < OLDEST * 10_000:
        raise StoreVersion(target.url, f"the server is PostgreSQL {version // 10_000}: {OLDEST} or newer is needed")
    if is_standby or is_read_only:
        what = "a standby" if is_standby else "read only (default_transaction_read_only)"
        raise StoreReadOnly(target.url, f"the server is {what}: use the primary's address")
    if encoding != "UTF8":
        raise StoreRefused(target.url, f"the database's encoding is {encoding}: make one with UTF8")
    if link.prepares:
        await link.run(_SESSION)
    elif isolation != _READ_COMMITTED:
        what = f"default_transaction_isolation is {isolation}"
        raise StoreRefused(target.url, f"{what}: set it to {_READ_COMMITTED} for this user")


async def check_schema(link: Link, target: Target) -> None:
    """Makes or migrates the schema if need be, and if that is allowed."""
    newest = len(migrations(target.schema))
    version = await schema_version(link, target)
    if version == newest:
        return
    refuse_newer(target, version, newest)
    if version is None and not target.creates:
        raise StoreMissing(target.url, f"it has no schema {target.schema!r}: check the URL, or add a first job there")
    if not target.migrates:
        what = f"has no schema {target.schema!r}" if version is None else f"has version {version} of {newest}"
        raise StoreRefused(target.url, f"it {what}: run `ropeway migrate`")
    await _migrate(link, target)


def refuse_newer(target: Target, version: int | None, newest: int) -> None:
    if version is not None and version > newest:
        raise StoreVersion(
            target.url,
            f"its schema has version {version}, this Ropeway knows {newest}: "
            "upgrade Ropeway here too, or use another schema",
        )


async def schema_version(link: Link, target: Target) -> int | None:
    """None if there is none of ours. A schema without our tables is taken for an empty one."""
    # Not `to_regclass`, which may answer from what the session saw before it had to wait for somebody who made it.
    [(is_there,)] = await link.ask(_IS_THERE, (text(target.schema),))
    if not is_there:
        return None
    [(version,)] = await link.ask(Statement(in_schema("SELECT max(number) FROM ropeway.version", target.schema)))
    return int(version or 0)


async def _migrate(link: Link, target: Target) -> None:
    """One step under a lock: of many processes that begin at once, one does it."""
    scripts = migrations(target.schema)
    await link.run("BEGIN")
    try:
        await link.run(f"SELECT pg_advisory_xact_lock({LOCK})")
        version = await schema_version(link, target)
        refuse_newer(target, version, len(scripts))
        for script in scripts[version or 0 :]:
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
