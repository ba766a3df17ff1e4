"""Errors as answers: problem details (RFC 9457) with the facts of our errors, and never a trace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from .. import errors
from ..errors import RopewayError
from ..job.ids import new_token
from ..logger import log
from ..showing import LONGEST_MESSAGE, on_one_line, shown

URN: Final = "urn:ropeway:problem:"


class Problem(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Why a request was refused, or failed; its `type` is for programs, its `detail` for people."""

    type: str
    title: str
    status: int
    detail: str
    error: str | None = None
    """The name of Ropeway's error, as in docs/errors.md."""
    facts: dict[str, Any] = {}
    """The attributes of that error."""
    id: str | None = None
    """With it the server's log says more."""


class Refused(Exception):
    """A request that is not carried out, and the answer to it."""

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **facts: Any
    ) -> None:
        self.problem: Final = Problem(
            type=f"{URN}{kind}", title=_title(kind), status=status, detail=detail, facts=facts
        )
        self.headers: Final = headers or {}
        super().__init__(detail)


STATUS: Final[tuple[tuple[type[RopewayError], int], ...]] = (
    (errors.PayloadTooLarge, 413),
    (errors.InvalidInput, 422),
    (errors.JobNotFound, 404),
    (errors.ScheduleNotFound, 404),
    (errors.WorkerNotFound, 404),
    (errors.JobError, 409),
    (errors.QueueBusy, 409),
    (errors.StoreUnavailable, 503),
    (errors.NoTransactions, 422),
    (errors.StoreError, 503),
)
"""The first class that fits decides; other errors are faults of the server, 500."""
RETRY_AFTER: Final = {"retry-after": "1"}


def problem_of(error: Exception) -> tuple[Problem, Mapping[str, str]]:
    """The answer to an error of any kind, and its headers."""
    if isinstance(error, Refused):
        return error.problem, error.headers
    if isinstance(error, RecursionError):
        return Refused(422, "invalid-body", "the body is nested too deeply").problem, {}
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    if isinstance(error, RopewayError) and not isinstance(error, errors.StoreError) and status < 500:
        return _told(error, status), {}
    return _hidden(error, status)


def _told(error: RopewayError, status: int) -> Problem:
    kind = type(error).__name__
    return Problem(
        type=URN + _kebab(kind),
        title=_title(_kebab(kind)),
        status=status,
        detail=on_one_line(str(error), LONGEST_MESSAGE),
        error=kind,
        facts={name: _fact(value) for name, value in vars(error).items() if not name.startswith("_")},
    )


def _hidden(error: Exception, status: int) -> tuple[Problem, Mapping[str, str]]:
    """Of the store or of this program: paths, statements and traces stay in the log, under an id."""
    id = new_token()
    store = isinstance(error, errors.StoreError)
    if store:
        log.error("request %s: %s", id, error)
    else:
        log.error("request %s failed", id, exc_info=error)
    kind = _kebab(type(error).__name__) if store else "internal-error"
    detail = "the store cannot be used now" if store else "the server failed"
    problem = Problem(
        type=URN + kind,
        title=_title(kind),
        status=status,
        detail=f"{detail}: its log says more under the id {id}",
        error=type(error).__name__ if store else None,
        id=id,
    )
    return problem, RETRY_AFTER if isinstance(error, errors.StoreUnavailable) else {}


def _fact(value: object) -> Any:
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError, RecursionError):
        return shown(value)


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _title(kind: str) -> str:
    return kind.replace("-", " ").capitalize()


def status_name(status: int) -> str:
    return HTTPStatus(status).phrase
