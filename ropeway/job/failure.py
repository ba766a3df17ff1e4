"""The stored form of an exception: reason and traceback. Never raises, whatever the exception does."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Final

import msgspec

from ..errors import RopewayError

REASON_LIMIT: Final = 2_000
TRACE_LIMIT: Final = 32 * 1024
UNKNOWN_REASON: Final = "Unknown reason"
EXPIRED_REASON: Final = "expired: it was not started in time"
_PACKAGE: Final = f"{Path(__file__).parents[1]}{os.sep}"
_WORKER: Final = f"{_PACKAGE}worker{os.sep}"


class Failure(msgspec.Struct, frozen=True):
    reason: str
    trace: str = ""


def failure_of(error: BaseException) -> Failure:
    """The failure of an error; its own `failure` attribute if it has one, as errors from other processes do."""
    try:
        given = getattr(error, "failure", None)
    except BaseException:  # noqa: BLE001 - a handler's own attribute access can raise anything
        given = None
    return given if isinstance(given, Failure) else Failure(_reason(error), _trace(error))


def _reason(error: BaseException) -> str:
    kind = type(error).__qualname__
    try:
        text = str(error)
    except BaseException as broken:  # noqa: BLE001 - a handler's own __str__ can raise anything
        text = f"(its text cannot be shown: {type(broken).__qualname__})"
    # A message alone ("0") often says too little; the type in front makes it searchable.
    raw = _storable(f"{kind}: {text}" if text else kind)
    return raw.decode() if len(raw) <= REASON_LIMIT else raw[: REASON_LIMIT - 4].decode("utf-8", "ignore") + " …"


def _trace(error: BaseException) -> str:
    try:
        # compact and limited: a recursion error has thousands of frames, a chain of causes may be a circle.
        trace = traceback.TracebackException.from_exception(error, limit=-50, compact=True)
        own = _own_frames(trace.stack)
        if own == len(trace.stack) and isinstance(error, RopewayError):
            # Raised by the worker itself, as for a result that is not JSON: the reason is sufficient.
            return ""
        # An error inside this package has no other frames to show.
        if own < len(trace.stack):
            trace.stack[:] = _without_worker(trace.stack[own:])
        text = "".join(trace.format())
    except BaseException:  # noqa: BLE001 - as above, in any of its causes
        try:
            text = "".join(traceback.format_tb(error.__traceback__, limit=-50))
        except BaseException:  # noqa: BLE001 - a job without a trace is better than a lost job
            return ""
    raw = _storable(text)
    # The end of a trace is more useful than its beginning.
    return raw.decode() if len(raw) <= TRACE_LIMIT else "… " + raw[-(TRACE_LIMIT - 4) :].decode("utf-8", "ignore")


def _own_frames(stack: traceback.StackSummary) -> int:
    """The number of frames of this package above the handler; all frames if the handler was not reached."""
    return next((number for number, frame in enumerate(stack) if not frame.filename.startswith(_PACKAGE)), len(stack))


def _without_worker(stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Without the frames of the worker between a handler and its steps; those in which the error was raised stay."""
    is_other = [not frame.filename.startswith(_WORKER) for frame in stack]
    end = len(stack) - is_other[::-1].index(True)
    return [frame for number, frame in enumerate(stack) if is_other[number] or number >= end]


def _storable(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace").replace(b"\x00", b"\\x00")
