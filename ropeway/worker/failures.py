"""Failures that were put into words before they reached the worker's loop."""

from __future__ import annotations

from typing import Final

from ..errors import RopewayError, Unrecoverable
from ..job.failure import Failure

INVALID_PAYLOAD: Final = "invalid payload"


class HandlerFailed(RopewayError):
    """An error that a handler raised in its process."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


class HandlerFailedForGood(HandlerFailed, Unrecoverable):
    """The same, for one that no retry can help."""


class PayloadRefused(HandlerFailedForGood):
    """The job's data is not what its handler takes; the handler was not called."""

    @classmethod
    def because(cls, problem: object) -> PayloadRefused:
        return cls(Failure(f"{INVALID_PAYLOAD}: {problem}"))
