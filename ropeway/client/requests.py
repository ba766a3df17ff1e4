"""From what users write to what stores take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, Protocol, SupportsIndex, TypeAlias, TypeVar

import msgspec

from ..errors import InvalidInput, InvalidOption
from ..job.codec import Json, encode
from ..job.failure import REASON_LIMIT
from ..job.ids import new_id
from ..job.options import JobOptions, read_options
from ..job.record import NewJob
from ..showing import shown
from .results import R, R_co

T_co = TypeVar("T_co", covariant=True)

PROGRESS_LIMIT: Final = 64 * 1024


class Call(msgspec.Struct, Generic[R_co], frozen=True):
    """One job of a bulk, before it is added."""

    name: str
    data: Json = None
    options: JobOptions = {}
    read_result: Callable[[Json], R_co] | None = None
    """From the stored result to the type that a task says."""


Named: TypeAlias = tuple[str, Json] | tuple[str, Json, JobOptions]
JobRequest: TypeAlias = Call[R] | tuple[str, Json] | tuple[str, Json, JobOptions] | str
"""What `add_many` takes several of: `task.call(...)`; a name and data; a name, data and options; or a name alone."""


class Several(Protocol[T_co]):
    """A list or the like. Text, which is made of names too, and a mapping are not: each is one thing by mistake."""

    def __iter__(self) -> Iterator[T_co]: ...

    def __contains__(self, item: object, /) -> bool: ...

    def __getitem__(self, place: SupportsIndex, /) -> T_co: ...


def call_of(request: JobRequest[R], position: int) -> Call[R]:
    if type(request) is tuple and len(request) == 2 and type(request[0]) is str:
        # What most bulks are made of; a match takes three times as long.
        return Call(*request)
    match request:
        case (str(name), data):
            return Call(name, data)
        case (str(name), data, Mapping() as options):
            return Call(name, data, {**options})  # type: ignore[typeddict-item]  # read_options checks it
        case Call():
            return checked_call(request)
        case str(name):
            return Call(name)
    raise InvalidInput(
        f"item {position} is {shown(request)}: use (name, data), (name, data, options) or task.call(...)"
    )


def checked_call(given: Call[R]) -> Call[R]:
    if not isinstance(given, Call):
        raise InvalidInput(f"add_call takes the answer of task.call(...), and not {shown(given)}")
    if not isinstance(given.options, Mapping):
        raise InvalidInput(f"the options of a Call are a dict, and not {shown(given.options)}")
    return given


def reason_text(given: object) -> str | None:
    """Why somebody cancels a job: text that every store can keep."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise InvalidOption("reason", f"cannot be {shown(given)}: use text")
    encode(given, "reason", REASON_LIMIT)
    return given.replace("\x00", "\\x00")


def new_job(
    queue: str,
    name: str,
    data: Json,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
    size_limit: int,
) -> NewJob:
    if defaults:
        options = {**defaults, **options}
    place, stored = read_options(options, beside_data=True)
    return NewJob(
        queue,
        place.id or new_id(),
        name,
        encode(data, "data", size_limit),
        stored,
        place.priority,
        place.lifo,
        place.delay,
        place.due_at,
        is_fresh=not place.id,
        tags=place.tags,
    )
