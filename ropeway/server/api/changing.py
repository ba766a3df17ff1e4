"""Managing jobs one by one: cancel, retry, promote, change, remove and signal."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ...errors import InvalidInput
from ...job.codec import Json
from ..job_fields import Span
from ..routes import Call, Route


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str | None = None
    children: bool = False
    """Also those below it in its flow that are not finished."""


class Cancelled(msgspec.Struct, frozen=True):
    cancelled: bool
    """False if it was cancelled before."""


class RetryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reset: bool = False
    """Restores all its attempts."""
    from_phase: str | None = None
    """The phase of its pipeline to begin at; that one and those after it forget their results and steps."""


class ChangeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    priority: int | None = None
    lifo: bool | None = None
    delay: Span | None = None
    run_at: datetime | None = None
    """Instead of `delay`."""
    payload: Json | UnsetType = UNSET


class RemoveQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    force: bool = False
    """Also while a worker has it."""
    children: bool = True


class Signal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    payload: Json = None


async def cancel(call: Call) -> Cancelled:
    asked: CancelRequest = call.body
    return Cancelled(await call.queue.cancel(call.params["id"], asked.reason, children=asked.children))


async def retry(call: Call) -> None:
    asked: RetryRequest = call.body
    await call.queue.retry(call.params["id"], reset=asked.reset, from_phase=asked.from_phase)


async def promote(call: Call) -> None:
    await call.queue.promote(call.params["id"])


async def change(call: Call) -> None:
    asked: ChangeRequest = call.body
    if asked.delay is not None and asked.run_at is not None:
        raise InvalidInput("delay and run_at were both given: give one of them")
    data = {} if asked.payload is UNSET else {"data": asked.payload}
    delay = asked.run_at if asked.delay is None else asked.delay
    await call.queue.change(call.params["id"], priority=asked.priority, lifo=asked.lifo, delay=delay, **data)


async def remove(call: Call) -> None:
    await call.queue.remove(call.params["id"], force=call.query.force, children=call.query.children)


async def signal(call: Call) -> None:
    await call.queue.signal(call.params["id"], call.body.name, call.body.payload)


_JOBS: Final = "/v1/queues/{queue}/jobs"


_JOB: Final = f"{_JOBS}/{{id}}"


ROUTES: Final = (
    Route(
        "POST",
        f"{_JOB}/cancel",
        cancel,
        ("operate",),
        "Cancels a job that is not finished, also a running one.",
        body=CancelRequest,
        answer=Cancelled,
        audited=True,
        tag="jobs",
    ),
    Route(
        "POST",
        f"{_JOB}/retry",
        retry,
        ("operate",),
        "Runs a finished job once more, from one of its phases if asked.",
        body=RetryRequest,
        audited=True,
        tag="jobs",
    ),
    Route("POST", f"{_JOB}/promote", promote, ("operate",), "Makes a delayed job wait now.", audited=True, tag="jobs"),
    Route(
        "POST",
        f"{_JOB}/signal",
        signal,
        ("add", "operate"),
        "Sends a signal to a job, which may wait for it.",
        body=Signal,
        audited=True,
        tag="jobs",
    ),
    Route(
        "PATCH",
        _JOB,
        change,
        ("operate",),
        "Changes a job that is not finished.",
        body=ChangeRequest,
        audited=True,
        tag="jobs",
    ),
    Route("DELETE", _JOB, remove, ("operate",), "Removes a job.", query=RemoveQuery, audited=True, tag="jobs"),
)
