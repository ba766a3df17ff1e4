"""Signatures of Standard Webhooks: HMAC-SHA256 over id, timestamp and body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "whsec_"
"""Before a key in base64, as secrets of Standard Webhooks are written. Others are used as they are."""
VERSION: Final = "v1,"


def key_of(secret: str) -> bytes:
    if secret.startswith(PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            pass
    return secret.encode()


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    content = b".".join((id.encode(), str(timestamp).encode(), body))
    digest = hmac.digest(key_of(secret), content, hashlib.sha256)
    return VERSION + base64.b64encode(digest).decode()


def signed_headers(id: str, timestamp: int, body: bytes, secrets: Iterable[str]) -> list[tuple[str, str]]:
    """The headers of a message: one signature for each secret."""
    headers = [("webhook-id", id), ("webhook-timestamp", str(timestamp))]
    signatures = " ".join(signature(secret, id, timestamp, body) for secret in secrets)
    return [*headers, ("webhook-signature", signatures)] if signatures else headers
