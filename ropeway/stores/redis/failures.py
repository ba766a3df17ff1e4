"""Translates errors of the server into those of Ropeway, with a remedy."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import hiredis
import msgspec

from ...errors import RopewayError, StoreCorrupt, StoreError, StoreFull, StoreRefused, StoreUnavailable
from ...store.doubt import unknown

NEEDED: Final = "Redis 6.2 or newer, or Valkey, is needed"
PASSING: Final = frozenset({"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "BUSY", "NOREPLICAS"})
"""Temporary refusals: nothing was done, and a retry may succeed soon."""
_FORBIDDEN: Final = (StoreRefused, "the server refused us: check user, password and their rights")
_CLUSTER: Final = (StoreRefused, "this server belongs to a cluster: use redis+cluster://host:6379")
_FOREIGN: Final = (StoreCorrupt, "one of our keys holds something else: does another application use our prefix?")
_MEANINGS: Final[dict[str, tuple[type[StoreError], str]]] = {
    **dict.fromkeys(PASSING, (StoreUnavailable, "the server cannot serve now")),
    # Unlike a replica that is there from the start: this one was the primary, and may be again.
    "READONLY": (StoreUnavailable, "this server is a replica now: Sentinel or a cluster would lead to the primary"),
    "OOM": (StoreFull, "the server's memory is full: raise maxmemory, or let workers catch up"),
    "MISCONF": (StoreFull, "the server cannot save to its disk and takes no writes"),
    **dict.fromkeys(("MOVED", "ASK", "CROSSSLOT"), _CLUSTER),
    **dict.fromkeys(("NOAUTH", "WRONGPASS", "NOPERM", "DENIED"), _FORBIDDEN),
    "WRONGTYPE": _FOREIGN,
}
_HINTS: Final = {
    **dict.fromkeys(("invalid password", "AUTH", "ACL failure", "can't run this command"), _FORBIDDEN),
    "max number of clients": (StoreUnavailable, "the server has too many clients: raise maxclients, or connect less"),
    "DB index": (StoreRefused, "the server has no database of that number: correct the URL, or raise `databases`"),
    **dict.fromkeys(("Bad data format", "data string too short"), _FOREIGN),
    "script": (StoreRefused, f"a script of the store failed, please report it ({NEEDED})"),
    "": (StoreRefused, f"it does not understand us ({NEEDED})"),
}
"""What has no word of its own, by what else it says; the last is all the rest."""
# Redis 6.2 wraps an error that a script ran into: "ERR Error running script (...): ... -OOM command not allowed".
_WRAPPED: Final = re.compile(rf"^ERR Error running script .*[ -]({'|'.join(_MEANINGS)}) ", re.DOTALL)


def code_of(error: BaseException) -> str:
    """The code at the beginning of an error of the server, such as NOSCRIPT."""
    said = str(error)
    wrapped = _WRAPPED.match(said)
    return wrapped[1] if wrapped else said.partition(" ")[0]


def typed(url: str, error: BaseException) -> BaseException:
    """The error of Ropeway for `error`; one that did not come from the server is returned unchanged."""
    if isinstance(error, RopewayError):
        return error
    found: StoreError
    match error:
        case hiredis.ReplyError():
            found = _refused(url, error)
        case OSError():
            found = unknown(url, str(error) or type(error).__name__)
        case _:
            return error
    found.__cause__ = error
    return found


@contextmanager
def reading(url: str, what: str = "") -> Iterator[None]:
    """Raises `StoreCorrupt` if stored bytes cannot be decoded: another application wrote them, or they are damaged.

    `what` names them, if nothing else depends on them.
    """
    try:
        yield
    except RopewayError:
        raise
    except (ValueError, struct.error, msgspec.MsgspecError) as error:
        kind, meaning = _FOREIGN
        if what:
            meaning = f"{what} is damaged, or another application's that uses our prefix: remove it with HDEL"
        raise kind(url, f"{meaning} ({error})") from error


def _refused(url: str, error: BaseException) -> StoreError:
    kind, meaning = _MEANINGS.get(code_of(error)) or next(found for hint, found in _HINTS.items() if hint in str(error))
    return kind(url, f"{meaning} ({error})")
