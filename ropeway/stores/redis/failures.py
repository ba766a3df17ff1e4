"""From the server's errors to Ropeway's, each with what to do about it."""

from __future__ import annotations

from typing import Final

import hiredis

from ...errors import RopewayError, StoreError, StoreFull, StoreReadOnly, StoreRefused, StoreUnavailable

PASSING: Final = frozenset({"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "BUSY", "NOREPLICAS"})
"""Nothing was done, and soon it may be possible."""
_FORBIDDEN: Final = frozenset({"NOAUTH", "WRONGPASS", "NOPERM", "DENIED"})


def code_of(error: BaseException) -> str:
    """The word with which the server begins an error, such as NOSCRIPT."""
    return str(error).partition(" ")[0]


def typed(url: str, error: BaseException) -> BaseException:
    """The error to raise for `error`; one that has nothing to do with the server stays as it is."""
    if isinstance(error, RopewayError):
        return error
    found: StoreError
    match error:
        case hiredis.ReplyError():
            found = _refused(url, error)
        case OSError():
            found = StoreUnavailable(
                url, f"{str(error) or type(error).__name__}; whether the call took effect is unknown"
            )
        case _:
            return error
    found.__cause__ = error
    return found


def _refused(url: str, error: BaseException) -> StoreError:
    code = code_of(error)
    if code == "OOM":
        return StoreFull(url, f"the server's memory is full: raise maxmemory, or let workers catch up ({error})")
    if code == "READONLY":
        return StoreReadOnly(url, f"this server is a replica: use the address of the primary, or Sentinel ({error})")
    if code == "MISCONF":
        return StoreFull(url, f"the server cannot save to its disk and takes no writes ({error})")
    if code in PASSING:
        return StoreUnavailable(url, f"the server cannot serve now ({error})")
    if code in _FORBIDDEN or "invalid password" in str(error) or "AUTH" in str(error):
        return StoreRefused(url, f"the server refused us: check user, password and their rights ({error})")
    what = "a script of the store failed, please report it" if "script" in str(error) else "it does not understand us"
    return StoreRefused(url, f"{what} (Redis 6.2 or newer, or Valkey, is needed): {error}")
