"""Checks of a server before it is used: its version, its encoding, and whether it takes writes."""

from __future__ import annotations

from typing import Final

from ...errors import StoreReadOnly, StoreRefused, StoreVersion
from .link import Link, Statement
from .target import Target

OLDEST: Final = 14
_SERVER: Final = Statement(
    "SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',"
    " current_setting('server_version_num')::integer, current_setting('server_encoding'),"
    " current_setting('default_transaction_isolation')"
)
_READ_COMMITTED: Final = "read committed"
_SESSION: Final = (
    # A verb looks again after it had to wait for a lock, and must see what was done meanwhile.
    f"SET default_transaction_isolation = '{_READ_COMMITTED}';"
    # A statement that waits for a lock must not wait for ever when its client is gone.
    "SET client_connection_check_interval = '5s'"
)


async def check_server(link: Link, target: Target) -> None:
    """Refuses a server that cannot keep jobs, and detects a pooler in front of it."""
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
