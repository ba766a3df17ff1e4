"""Errors of handlers whose `Failure` record exists already, because they were raised elsewhere."""

from __future__ import annotations

from typing import Final

from ..errors import RopewayError, SignalTimeout, Unrecoverable
from ..job.failure import Failure

INVALID_PAYLOAD: Final = "invalid payload"


class HandlerFailed(RopewayError):
    """An error that a handler raised in its process."""

    def __init__(
        self, failure: Failure, late_signals: tuple[str, ...] = (), failed_steps: tuple[str, ...] = ()
    ) -> None:
        self.failure = failure
        self.late_signals = late_signals
        """The signals of the `SignalTimeout` that it was raised from."""
        self.failed_steps = failed_steps
        """The steps of the `StepFailed` that it was raised from."""
        super().__init__(failure.reason)


class HandlerFailedForGood(HandlerFailed, Unrecoverable):
    """An error that a handler raised in its process, and that must not be retried."""


class SignalTimeoutInProcess(HandlerFailed, SignalTimeout):
    """A `SignalTimeout` that left a handler in its process."""

    def __init__(self, failure: Failure, late_signals: tuple[str, ...], queue: str, job_id: str) -> None:
        SignalTimeout.__init__(self, queue, job_id, late_signals[0])
        self.failure, self.late_signals, self.failed_steps = failure, late_signals, ()


class PayloadRefused(HandlerFailedForGood):
    """The job's data does not fit its handler's signature; the handler was not called."""

    @classmethod
    def because(cls, problem: object) -> PayloadRefused:
        return cls(Failure(f"{INVALID_PAYLOAD}: {problem}"))
