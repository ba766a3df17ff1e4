"""Calling typed functions with the decoded data of their jobs. Decoders are built once, not for every job."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from ..client.inputs import Input
from ..client.jobtype import JobType
from ..client.payload_versions import NoUpgrade, upgraded, version_of
from ..client.signature import TaskSignature
from ..errors import InvalidOption, InvalidPayload, Postponed
from ..job.backoff import Backoff
from ..job.codec import LARGEST_SIZE_LIMIT, Json, JsonText, encode
from ..job.record import JobRecord
from ..job.shape import Shape
from ..job.wrong_values import listed, wrong_values
from ..logger import log
from ..showing import shown
from .failures import PayloadRefused

Caller: TypeAlias = Callable[[Any], Any]
"""Takes the running job: a `Job`, `SyncJob` or `ProcessJob`, as its function expects."""
NEWER_BACKOFF: Final = Backoff.exponential(5, max_delay=300)
"""How long a job of a newer version waits for a worker that knows it."""
Dump: TypeAlias = Callable[[Any], Json]
"""Converts a function's result to JSON."""


def call_task(signature: TaskSignature) -> Caller:
    function, read, keywords = signature.function, _reader(signature.arguments.decoder()), signature.arguments.keywords
    if signature.arguments.inputs:
        read = _refusing_unfilled(read, signature)
    if keywords:
        function = _naming(function, keywords)
    if signature.takes_job:
        return lambda job: function(job, *read(job.record.data))
    return lambda job: function(*read(job.record.data))


def call_handler(job_type: JobType[Any, Any], function: Callable[..., Any]) -> Caller:
    """Calls a handler of a job type with its data, or with the job and its data."""
    read = _versioned_reader(job_type)
    taken = len(_positional(job_type, function))
    if taken == 1:
        return lambda job: function(read(job))
    if taken == 2:
        return lambda job: function(job, read(job))
    raise InvalidOption("handler", f"for {job_type!r} takes {taken} arguments: let it take (data) or (job, data)")


def dump_result(shape: Shape[Any]) -> Dump | None:
    """The converter for results; None if they need none."""
    return None if shape.is_plain else partial(shape.dump, what="result")


def _reader(decode: Callable[[JsonText], Any]) -> Callable[[JsonText], Any]:
    def read(data: JsonText) -> Any:
        try:
            return decode(data)
        except msgspec.DecodeError as wrong:
            raise PayloadRefused.because(listed(wrong_values(wrong))) from None
        except RecursionError as wrong:
            raise PayloadRefused.because(wrong) from None

    return read


def _versioned_reader(job_type: JobType[Any, Any]) -> Callable[[Any], Any]:
    """Reads the data of a job; of another version than that of the type, brings it there or leaves it to others."""
    read, version = _reader(job_type.data.decoder()), job_type.version

    def current(job: Any) -> Any:
        record: JobRecord = job.record
        stored = version_of(record)
        if stored == version:
            return read(record.data)
        if stored > version:
            raise _left_to_others(job_type, record, stored)
        try:
            data = upgraded(record.read_data(), stored, version, job_type.upgrades)
            text = encode(data, "upgraded data", LARGEST_SIZE_LIMIT)
        except (NoUpgrade, InvalidPayload) as wrong:
            raise PayloadRefused.because(wrong) from None
        job.upgraded_to = version
        return read(text)

    return current


def _left_to_others(job_type: JobType[Any, Any], record: JobRecord, stored: int) -> Postponed:
    """Its producer is newer than this worker: failing it would lose what another worker can do."""
    delay = NEWER_BACKOFF.after(record.attempts_started, 0)
    log.warning(
        "job %s in %r has data of version %d, and this worker knows %r up to version %d: "
        "it waits %g s for a newer worker",
        *(record.id, record.queue, stored, job_type.name, job_type.version, delay / 1000),
    )
    return Postponed(delay)


def _refusing_unfilled(read: Callable[[JsonText], Any], signature: TaskSignature) -> Callable[[JsonText], Any]:
    """A reader that refuses a job that was added without the one whose result it takes."""
    names = [*signature.arguments.shapes]

    def checked(data: JsonText) -> Any:
        values = read(data)
        for name, value in zip(names, values, strict=True):
            if isinstance(value, Input):
                raise PayloadRefused.because(f"{name!r} takes {value!r}, and the job was added without that one")
        return values

    return checked


def _naming(function: Callable[..., Any], keywords: tuple[str, ...]) -> Callable[..., Any]:
    """Wraps a function with keyword-only parameters, so that it can be called with all values in order."""
    count = len(keywords)

    def call(*values: Any) -> Any:
        return function(*values[:-count], **dict(zip(keywords, values[-count:], strict=True)))

    return call


def _positional(job_type: JobType[Any, Any], function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidOption("handler", f"for {job_type!r} is {shown(function)}: give a function") from None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each for each in parameters if each.kind in kinds and each.default is inspect.Parameter.empty]
