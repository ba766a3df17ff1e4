"""From answers that are refusals to the errors that the store behind the server would raise here."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ... import errors
from ...errors import (
    InvalidOption,
    PayloadTooLarge,
    RopewayError,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    StoreVersion,
)
from ...showing import on_one_line
from ...store.doubt import unknown
from .link import Reply
from .target import TOKEN, Target

SAME_VERSION: Final = "run the same version of Ropeway here and there"
LONGEST: Final = 500
_PROBLEM: Final = b"application/problem+json"
_NOTHING_DONE: Final = ("urn:ropeway:problem:overloaded", "urn:ropeway:problem:not-ready")


class Problem(msgspec.Struct, frozen=True):
    """What an answer says about its refusal, as far as it is needed here."""

    type: str = ""
    detail: str = ""
    error: str | None = None
    facts: dict[str, Any] = {}


def pause_before_repeat(reply: Reply) -> float | None:
    """Seconds after which a request that had no effect may be repeated; None for other answers."""
    if reply.status != 429 and not (reply.status == 503 and _is_without_effect(_problem(reply))):
        return None
    given = reply.headers.get(b"retry-after", b"").strip()
    return float(given) if given.isdigit() and len(given) < 10 else 1.0


def error_of(target: Target, reply: Reply, size: int) -> RopewayError:
    """The error for an answer that is not one of success; `size` is that of the request."""
    problem = _problem(reply)
    if problem is None:
        return _unexpected(target.url, reply)
    return _same(target.url, problem) if problem.error is not None else _refused(target, reply.status, problem, size)


def _refused(target: Target, status: int, problem: Problem, size: int) -> RopewayError:
    """By the server itself, and not by its store."""
    url, said = target.url, problem.detail
    match status:
        case 401:
            how = "the server refuses this token" if target.token else "the server wants a token"
            return StoreRefused(url, f"{how}: set {TOKEN} to one that `ropeway tokens create` made in its store")
        case 403:
            return StoreRefused(url, f"{said}: set {TOKEN} to one that may do this")
        case 413:
            return PayloadTooLarge("a call of this size", size, int(problem.facts.get("limit", 0)))
        case 429 | 503:
            return StoreBusy(url, said)
    return StoreRefused(url, said) if status < 500 else unknown(url, said)


def _unexpected(url: str, reply: Reply) -> StoreError:
    """For an answer of something else: a proxy, or another program at this address."""
    status = reply.status
    if status in (429, 503):
        return StoreBusy(url, f"the server, or a proxy before it, answers {status}, and takes no requests now")
    if status >= 500:
        return unknown(url, f"the server, or a proxy before it, failed with {status}")
    if status in (401, 403):
        return StoreRefused(url, f"something before the server answers {status}: it wants more than {TOKEN}")
    if 300 <= status < 400:
        place = on_one_line(reply.headers.get(b"location", b"another place").decode("latin-1"), LONGEST)
        return StoreRefused(url, f"the server refers to {place}, which is not followed: use the URL of Ropeway there")
    return StoreRefused(url, f"this is no server of Ropeway, it answers {status}: check host, port and path")


def unreadable(url: str, error: Exception) -> StoreVersion:
    return StoreVersion(url, f"an answer of the server cannot be read ({error}): {SAME_VERSION}")


def _problem(reply: Reply) -> Problem | None:
    if reply.headers.get(b"content-type", b"").partition(b";")[0].strip() != _PROBLEM:
        return None
    try:
        return msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _is_without_effect(problem: Problem | None) -> bool:
    return problem is None or problem.type in _NOTHING_DONE


def _same(url: str, problem: Problem) -> RopewayError:
    """The error that was raised there."""
    kind = getattr(errors, problem.error or "", None)
    if not isinstance(kind, type) or not issubclass(kind, RopewayError):
        return StoreVersion(url, f"the server answers with the error {problem.error}: {SAME_VERSION}")
    if issubclass(kind, StoreError):
        if kind is StoreClosed:
            # That of the server, not this handle.
            kind = StoreUnavailable
        return unknown(url, problem.detail) if kind is StoreUnavailable else _made(kind, url, problem.detail)
    if kind is InvalidOption and problem.facts.get("option") == "command":
        return StoreVersion(
            url, f"the server does not know this command ({problem.facts.get('problem')}): {SAME_VERSION}"
        )
    error = kind.__new__(kind)
    error.args = (problem.detail,)
    error.__dict__.update(problem.facts)
    return error


def _made(kind: type[StoreError], url: str, detail: str) -> StoreError:
    error = kind.__new__(kind)
    StoreError.__init__(error, url, detail)
    return error
