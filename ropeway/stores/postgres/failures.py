"""Translation of the server's errors into Ropeway's, each with what to do about it."""

from __future__ import annotations

import re
from typing import Final

from psycopg import Error

from ...errors import (
    RopewayError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
)
from ...store.doubt import unknown

ROLLED_BACK: Final = frozenset(
    {
        "40001",  # serialization_failure
        "40P01",  # deadlock_detected
        "55P03",  # lock_not_available: a lock_timeout of the administrator
        "57014",  # query_canceled: a statement_timeout of the administrator
        "25P03",  # idle_in_transaction_session_timeout
        "25P04",  # transaction_timeout
    }
)
"""The statement was rolled back, and may succeed when it is repeated."""
STATEMENT_LOST: Final = frozenset({"26000", "0A000"})
"""The session has no such prepared statement, or it was prepared for tables that have changed since."""
_CONNECTION_ENDED: Final = frozenset({"57P01", "57P02", "57P03", "57P04", "57P05"})
READ_ONLY: Final = "25006"
NO_FUNCTION: Final = "42883"


_LOGIN_REFUSED: Final = re.compile(
    r"FATAL: .*(authentication failed|no pg_hba\.conf entry|role .* does not exist"
    r"|(?P<database>database .* does not exist))"
)


def code_of(error: BaseException) -> str | None:
    """The server's SQLSTATE; for a refused login, which libpq reports as text only, one that fits its message."""
    if not isinstance(error, Error):
        return None
    refused = _LOGIN_REFUSED.search(str(error)) if error.sqlstate is None else None
    if refused is None:
        return error.sqlstate
    return "3D000" if refused["database"] else "28000"


def typed_error(url: str, error: BaseException) -> BaseException:
    """Ropeway's error for `error`; one that has nothing to do with the server is returned as it is."""
    if isinstance(error, RopewayError) or not isinstance(error, Error | OSError):
        return error
    if isinstance(error, OSError) and error.errno is None:
        # A signal handler's, not the system's: a TimeoutError, say.
        return error
    found = _typed(url, code_of(error), " ".join(str(error).split()) or type(error).__name__)
    found.__cause__ = error
    return found


def raise_typed(url: str, error: BaseException) -> None:
    """Raises Ropeway's error for `error`, unless that is `error` itself.

    An error that is raised from itself would keep alive what its traceback holds, such as a connection.
    """
    found = typed_error(url, error)
    if found is not error:
        raise found from error


def _typed(url: str, code: str | None, said: str) -> StoreError:
    if code is None or code in _CONNECTION_ENDED or code.startswith("08"):
        return unknown(url, said)
    for codes, error, what in _MESSAGES:
        if code.startswith(codes):
            return error(url, what.format(said))
    return StoreRefused(url, f"a statement of the store failed, please report it: {code} {said}")


_MESSAGES: Final[tuple[tuple[tuple[str, ...], type[StoreError], str], ...]] = (
    (("53100",), StoreFull, "the server's disk is full ({})"),
    (("54",), StoreFull, "the server has come to a limit of its own ({})"),
    (("58",), StoreUnavailable, "the server cannot use its files ({})"),
    (("XX001", "XX002"), StoreCorrupt, "the server found its files damaged ({})"),
    (("53",), StoreUnavailable, "the server has no room for us now ({})"),
    ((READ_ONLY,), StoreReadOnly, "this server takes no writes: use the address of the primary ({})"),
    (tuple(ROLLED_BACK), StoreBusy, "others were in the way again and again ({})"),
    (("28", "3D000"), StoreRefused, "the server refused us: check user, password and database ({})"),
    (("42501",), StoreRefused, "this user lacks a right: grant it, as docs/postgres.md says ({})"),
    (
        ("42P01", NO_FUNCTION, "3F000", "42704", "42703"),
        StoreRefused,
        "its schema is not whole: restore it, or drop it and run `ropeway migrate` ({})",
    ),
)
"""By the beginning of the SQLSTATE; the first match counts."""
