"""From a request's headers to its principal."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ..errors import RopewayError
from ..store.contract import Store
from ..store.single_flight import SingleFlight
from .problems import Refused
from .roles import LOCAL, Principal, rights_of
from .tokens import AccessToken, read_tokens, split_token

REMEMBERED: Final = 2.0
"""Seconds for which a token is not read again: so long a revoked one may still be used."""
CHECKED_EVERY: Final = 5.0
"""Seconds after which the token of a request that lasts is looked at again."""
MOST_REMEMBERED: Final = 10_000
WINDOW: Final = 60.0
"""Seconds in which failed attempts are counted."""
MOST_FAILURES: Final = 20
"""Failed attempts of an address, or with a key id, after which no more are looked at in this window."""
ADDRESS: Final = "address "
FORWARDED: Final = frozenset(
    {
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-prefix",
        b"x-forwarded-proto",
        b"x-real-ip",
        b"via",
    }
)
"""Headers that proxies add."""

Headers = Iterable[tuple[bytes, bytes]]


class Caller(NamedTuple):
    """Where a request comes from."""

    address: str
    is_local: bool
    """From this machine, as far as can be told, and not through a proxy."""


def caller_of(scope: Any) -> Caller:
    client = scope.get("client")
    address = client[0] if client else ""
    # A unix socket has no address: who may open it is decided by its folder.
    is_local = (not address or is_loopback(address)) and not any(name in FORWARDED for name, _ in scope["headers"])
    return Caller(address, is_local)


def is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Failures:
    """Counts failed attempts by key in windows of a minute. Bounded: the oldest keys are forgotten."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def note(self, key: str) -> None:
        began, count = self._current(key)
        self._counts[key] = began, count + 1
        self._counts.move_to_end(key)
        while len(self._counts) > MOST_REMEMBERED:
            self._counts.popitem(last=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def left(self, key: str) -> float | None:
        """Seconds until attempts are looked at again; None if they are now."""
        began, count = self._current(key)
        return None if count < MOST_FAILURES else max(1.0, began + WINDOW - time.monotonic())

    def _current(self, key: str) -> tuple[float, int]:
        began, count = self._counts.get(key, (0.0, 0))
        now = time.monotonic()
        return (began, count) if count and now - began < WINDOW else (now, 0)


class Authenticator:
    """Knows the tokens of a store. While it has none, callers on this machine need none."""

    def __init__(self, store: Store, *, no_auth: bool = False) -> None:
        self._store = store
        self._no_auth = no_auth
        """Callers on this machine need no token, even if there are some."""
        self._tokens: dict[str, AccessToken] = {}
        self._now = 0
        self._read_at = -REMEMBERED
        self._reading = SingleFlight(store.url, self._read)
        self._failures = Failures()
        self._proven: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Key ids with addresses that have used them: the failures of others do not shut these out."""

    async def has_tokens(self) -> bool:
        await self._refresh()
        return bool(self._tokens)

    async def principal(self, headers: Headers, caller: Caller) -> Principal:
        """Raises `Refused`, always in the same words, for anything but a valid token."""
        given = [value for name, value in headers if name == b"authorization"]
        if not given and caller.is_local and (self._no_auth or not await self.has_tokens()):
            return LOCAL
        self._refuse_many(f"{ADDRESS}{caller.address}")
        parts = split_token(_bearer(given))
        if parts is None:
            raise self._unknown(caller, None)
        id, secret = parts
        if (id, caller.address) not in self._proven:
            self._refuse_many(f"key {id}")
        await self._refresh()
        token = self._tokens.get(id) or await self._newest(id)
        if token is None or not token.accepts(secret, self._clock()):
            raise self._unknown(caller, id)
        self._proven[id, caller.address] = None
        self._proven.move_to_end((id, caller.address))
        if len(self._proven) > MOST_REMEMBERED:
            self._proven.popitem(last=False)
        return Principal(id, rights_of(token.roles), token.queues)

    async def until_invalid(self, principal: Principal) -> None:
        """Waits until the caller's token is revoked or has expired: for requests that last."""
        while True:
            await asyncio.sleep(CHECKED_EVERY)
            if principal is not LOCAL:
                with suppress(RopewayError):
                    await self._refresh()
                token = self._tokens.get(principal.name)
                if token is None or token.is_expired(self._clock()):
                    return

    def failed_addresses(self) -> list[str]:
        """The addresses of failed attempts, of the last minute at most."""
        return [key.removeprefix(ADDRESS) for key in self._failures if key.startswith(ADDRESS)]

    async def _refresh(self) -> None:
        if time.monotonic() - self._read_at >= REMEMBERED:
            await self._reading.result()

    async def _newest(self, id: str) -> AccessToken | None:
        """A token that was made since the last reading."""
        for token in await read_tokens(self._store, id):
            self._tokens[token.id] = token
        return self._tokens.get(id)

    async def _read(self) -> None:
        started = time.monotonic()
        tokens = {token.id: token for token in await read_tokens(self._store)}
        self._now = await self._store.clock()
        self._tokens, self._read_at = tokens, started

    def _clock(self) -> int:
        """The store's clock, as of the last reading of the tokens and the time since."""
        return self._now + int((time.monotonic() - self._read_at) * 1000)

    def _refuse_many(self, key: str) -> None:
        if (left := self._failures.left(key)) is not None:
            raise Refused(
                429,
                "too-many-attempts",
                "too many attempts with wrong tokens: try again later",
                headers={"retry-after": str(int(left))},
            )

    def _unknown(self, caller: Caller, id: str | None) -> Refused:
        self._failures.note(f"{ADDRESS}{caller.address}")
        if id is not None:
            self._failures.note(f"key {id}")
        return unauthorized()


def unauthorized() -> Refused:
    return Refused(
        401,
        "unauthorized",
        "a valid token is needed, as in the header: Authorization: Bearer rw_...",
        headers={"www-authenticate": "Bearer"},
    )


def _bearer(given: list[bytes]) -> str:
    """The token of the only header; "" for anything that is not one, such as text that is not ASCII."""
    if len(given) != 1:
        return ""
    kind, _, token = given[0].partition(b" ")
    return token.decode("ascii", "replace").strip() if kind.lower() == b"bearer" else ""
