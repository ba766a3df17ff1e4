"""Log lines about single jobs: one for each attempt that ended, and for each failed try of a step or a phase."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Any, Final

from ..job.codec import Json, encode
from ..job.failure import Failure, failure_of
from ..job.instants import Milliseconds
from ..logger import log
from .timing import in_words

if TYPE_CHECKING:
    from .job import Job

MOST_A_SECOND: Final = 100
"""Lines about completed jobs. Further ones are summed up in one line per second, except at debug level."""
PROGRESS_EVERY: Final = 10.0
"""Seconds between two lines about the progress of one job, and before the first."""
LONGEST_PROGRESS: Final = 200


class JobLog:
    """Writes the lines, rate-limited. A log record carries the same facts under `facts`, for structured logs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left: float = 0
        self._until = 0.0
        """End of the second in which `_left` more lines may be written."""
        self._more = 0
        """Jobs in that second that were counted instead."""
        self._summing_up: asyncio.TimerHandle | None = None

    def begin(self, jobs: list[Job]) -> None:
        if log.isEnabledFor(logging.DEBUG):
            for job in jobs:
                _tell(logging.DEBUG, job, "active", f"begins attempt {job.attempt}")

    def completed(self, job: Job) -> None:
        if self._summing_up is not None:
            self._more += 1
            return
        now = self._loop.time()
        if now >= self._until:
            self._left = math.inf if log.isEnabledFor(logging.DEBUG) else MOST_A_SECOND
            self._until = now + 1
        if self._left > 0:
            self._left -= 1
            _tell(logging.INFO, job, "completed", f"completed{_time(job, 'in')}")
        else:
            self._more += 1
            self._summing_up = self._loop.call_at(self._until, self.sum_up)

    def sum_up(self) -> None:
        """Logs how many jobs were counted instead of logged."""
        if self._summing_up is not None:
            self._summing_up.cancel()
            self._summing_up = None
        if self._more:
            more, self._more = self._more, 0
            facts = {"event": "completed", "count": more}
            log.info("%s more jobs completed within a second", f"{more:,}", extra={"facts": facts})

    def failed(self, job: Job, failure: Failure) -> None:
        trace = f"\n{failure.trace.rstrip()}" if failure.trace else ""
        attempt = f" at attempt {job.attempt} of {job.options.attempts}" if job.options else ""
        what = f"failed for good{attempt}{_time(job, 'after')}"
        _tell(logging.WARNING, job, "failed", what, f"{failure.reason}{trace}")

    def retried(self, job: Job, failure: Failure, delay: Milliseconds) -> None:
        what = f"failed{_time(job, 'after')} and is retried {_when(delay / 1000)}"
        _tell(logging.INFO, job, "retrying", what, failure.reason)

    def handed_back(self, job: Job) -> None:
        _tell(logging.INFO, job, "waiting", f"was handed back{_time(job, 'after')} and waits again")

    def revoked(self, job: Job, how: str) -> None:
        """Logs that a running job was cancelled or removed."""
        reason = "" if job.timing is None else job.timing.revoked_for or ""
        _tell(logging.INFO, job, how, f"was {how}{_time(job, 'after')}", reason)

    def progressed(self, job: Job, value: Json) -> None:
        """Logs the progress of jobs that run for long."""
        if job.timing is not None and job.timing.should_log(value, PROGRESS_EVERY):
            _tell(logging.INFO, job, "progress", f"is at {_progress(value)} after {in_words(job.timing.so_far)}")


def log_next_try(job: Job, what: str, error: BaseException, pause: float) -> None:
    """Logs that a step or a phase failed, and is tried again within this attempt: nothing else tells of it."""
    if log.isEnabledFor(logging.INFO):
        said = f"failed at {what}, which is tried again {_when(pause)}"
        _tell(logging.INFO, job, "try-failed", said, failure_of(error).reason)


def _tell(level: int, job: Job, event: str, what: str, why: str = "") -> None:
    if not log.isEnabledFor(level):
        return
    facts: dict[str, Any] = {"event": event, "queue": job.queue.name, "job_id": job.id, "job_name": job.name}
    if job.timing is not None and job.timing.took is not None:
        facts["seconds"] = round(job.timing.took, 6)
    message = f"{job.name} {what} ({job.queue.name} {job.id})"
    log.log(level, "%s", f"{message}: {why}" if why else message, extra={"facts": facts})


def _when(pause: float) -> str:
    return f"in {in_words(pause)}" if pause else "at once"


def _time(job: Job, preposition: str) -> str:
    """Empty if the job was not timed, because its level is not logged."""
    took = None if job.timing is None else job.timing.took
    return "" if took is None else f" {preposition} {in_words(took)}"


def _progress(value: Json) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100:
        return f"{value:g} %"
    text = encode(value)
    return text if len(text) <= LONGEST_PROGRESS else f"{text[: LONGEST_PROGRESS - 1]}…"
