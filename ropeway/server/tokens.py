"""Access tokens: `rw_<key id>_<secret>`. Stores keep the SHA-256 of the secret, as a record under the key id."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec

from ..errors import InvalidName, InvalidOption
from ..job.choices import one_of
from ..job.instants import Instant
from ..job.names import job_name, queue_name
from ..showing import shown
from ..store.contract import Store
from ..store.values import Record
from .roles import ROLES, Role

TOKEN_RECORDS: Final = "token"
_TOKEN: Final = re.compile(r"rw_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)


class AccessToken(msgspec.Struct, frozen=True):
    """A token as the store has it: without its secret."""

    id: str
    hash: str
    roles: tuple[Role, ...]
    queues: tuple[str, ...] | None
    """Names, or beginnings of names that end with `*`; None for all."""
    name: str
    created_at: Instant
    expires_at: Instant | None = None

    def accepts(self, secret: str, now: Instant) -> bool:
        """Takes the same time whatever the secret is. `secret` is ASCII."""
        is_right = hmac.compare_digest(_hash(secret), self.hash)
        return is_right and not self.is_expired(now)

    def is_expired(self, now: Instant) -> bool:
        return self.expires_at is not None and now >= self.expires_at


def split_token(text: str) -> tuple[str, str] | None:
    """Key id and secret; None for what cannot be a token."""
    match = _TOKEN.fullmatch(text)
    return (match[1], match[2]) if match else None


async def create_token(
    store: Store,
    roles: Iterable[Role],
    *,
    queues: Iterable[str] | None = None,
    name: str = "",
    lasting: int | None = None,
) -> tuple[str, AccessToken]:
    """Makes a token, valid for `lasting` milliseconds if given. Its text is in this answer, and nowhere else."""
    granted = tuple(dict.fromkeys(one_of(*ROLES)("role", role) for role in roles))
    if not granted:
        raise InvalidOption("role", f"is missing: give at least one of {', '.join(ROLES)}")
    scope = None if queues is None else tuple(dict.fromkeys(map(queue_pattern, queues)))
    id, secret = secrets.token_hex(8), secrets.token_hex(32)
    now = await store.clock()
    expires_at = None if lasting is None else now + lasting
    token = AccessToken(id, _hash(secret), granted, scope, job_name(name) if name else "", now, expires_at)
    await store.remember(Record(TOKEN_RECORDS, id, msgspec.json.encode(token).decode()), expect=0, lasting=lasting)
    return f"rw_{id}_{secret}", token


async def read_tokens(store: Store, id: str | None = None) -> list[AccessToken]:
    """The tokens of a store, the oldest first; those that cannot be read are left out."""
    found = []
    for record in await store.recall(TOKEN_RECORDS, id):
        with suppress(msgspec.MsgspecError):
            found.append(msgspec.json.decode(record.value, type=AccessToken))
    return sorted(found, key=lambda token: token.created_at)


async def revoke_token(store: Store, id: str) -> bool:
    """False if there is none with this id."""
    return await store.forget(TOKEN_RECORDS, id)


def queue_pattern(given: object) -> str:
    """A queue's name, or a beginning with `*` behind it."""
    if given == "*":
        return "*"
    try:
        return queue_name(given.removesuffix("*") if isinstance(given, str) else given) + (
            "*" if isinstance(given, str) and given.endswith("*") else ""
        )
    except InvalidName:
        raise InvalidOption("queue", f"cannot be {shown(given)}: use a queue's name, or its beginning and *") from None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
