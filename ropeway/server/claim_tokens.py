"""Tokens of claims over HTTP: 128 random bits, and a mark of the worker to whom they were given."""

from __future__ import annotations

import hashlib
import hmac

from ..job.ids import new_token


def claim_token(worker: str) -> str:
    return f"{new_token()}.{_mark(worker)}"


def is_of(token: str, worker: str | None) -> bool:
    """False if the token was given to another worker, or to none: stores may refuse text with control characters."""
    _, dot, mark = token.partition(".")
    is_own = worker is None or not dot or hmac.compare_digest(mark.encode(), _mark(worker).encode())
    return is_own and token.isprintable()


def _mark(worker: str) -> str:
    return hashlib.sha256(worker.encode()).hexdigest()[:16]
