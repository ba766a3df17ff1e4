"""`verify`: for receivers of webhooks."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ..errors import InvalidOption, InvalidSignature
from ..showing import shown
from .signing import signature

TOLERANCE: Final = 300
MOST_SIGNATURES: Final = 10
_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


def verify(
    headers: Mapping[str, str],
    body: bytes | str,
    secret: str | Iterable[str],
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> dict[str, Any]:
    """Checks that a request is a webhook signed with `secret`, or with one of several, and returns its content.

    `body` is the request's body as it was received, before any decoding. Raises `InvalidSignature` if it was not signed
    so, or is older than `tolerance` seconds. The same message may come twice, with the same `webhook-id`.
    """
    id, sent_at, signatures = _read(headers)
    if not isinstance(body, bytes | bytearray | memoryview | str):
        raise InvalidOption("body", f"cannot be {shown(body)}: give the body as it was received, before any decoding")
    content = body.encode("utf-8", "replace") if isinstance(body, str) else bytes(body)
    if abs((time.time() if now is None else now) - sent_at) > tolerance:
        raise InvalidSignature(f"it was sent more than {tolerance:g} s ago, or the clocks differ")
    secrets = [secret] if isinstance(secret, str) else [*secret]
    if not secrets:
        raise InvalidSignature("no secret was given to verify it with")
    # Every pair is compared, so that the time tells nothing.
    matches = [
        hmac.compare_digest(signature(one, id, sent_at, content).encode(), given.encode())
        for one in secrets
        for given in signatures
    ]
    if not any(matches):
        raise InvalidSignature("it was not signed with this secret, or its body was changed")
    try:
        message = msgspec.json.decode(content)
    except msgspec.MsgspecError:
        raise InvalidSignature("its body is not JSON") from None
    if not isinstance(message, dict):
        raise InvalidSignature("its body is not a JSON object")
    return message


def _read(headers: Mapping[str, str]) -> tuple[str, int, list[str]]:
    # Text that cannot be encoded is nothing that was signed.
    given = {
        name.lower(): value.encode("utf-8", "replace").decode()
        for name, value in headers.items()
        if name.lower() in _HEADERS
    }
    for name in _HEADERS:
        if not given.get(name):
            raise InvalidSignature(f"it has no header {name}")
    timestamp = given["webhook-timestamp"]
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
        raise InvalidSignature("its webhook-timestamp is not a number of seconds")
    return given["webhook-id"], int(timestamp), given["webhook-signature"].split(" ")[:MOST_SIGNATURES]
