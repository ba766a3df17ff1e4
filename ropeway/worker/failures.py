"""Errors of handlers whose `Failure` record exists already, because they were raised elsewhere."""

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
    """An error that a handler raised in its process, and that must not be retried."""


class PayloadRefused(HandlerFailedForGood):
    """The job's data does not fit its handler's signature; the handler was not called."""

    @classmethod
    def because(cls, problem: object) -> PayloadRefused:
        return cls(Failure(f"{INVALID_PAYLOAD}: {problem}"))
