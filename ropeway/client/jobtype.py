"""Job types: a typed contract between producers and workers that share no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, Unpack, overload

import msgspec

from ..errors import InvalidArguments, InvalidInput, InvalidOption
from ..job.names import job_name
from ..job.options import JobOptions, read_options
from ..job.shape import Shape
from ..job.wrong_values import listed, wrong_values
from ..showing import error_text, shown
from .found import FoundJob
from .handle import JobHandle
from .new_jobs import Call
from .payload_versions import Upgrade, checked_upgrades
from .portal import refuse_on_a_loop, run
from .sync_found import SyncFoundJob
from .sync_handle import SyncJobHandle

if TYPE_CHECKING:
    from .queue import Queue

D = TypeVar("D")
R = TypeVar("R")
Upgrades: TypeAlias = Mapping[int, Upgrade]


class JobType(Generic[D, R]):
    """A job's name with the types of its data and its result: `JobType("send_email", EmailIn, EmailOut)`.

    Producers write `await SEND_EMAIL.add(queue, EmailIn(...))`, workers `@worker.handler(SEND_EMAIL)`. Without a type
    the result is any JSON. Options are defaults for its jobs.

    With `version=2, upgrade={1: function}` workers bring older data to this version before they check it: each function
    takes data as JSON has it, and answers that of the next version. Jobs of newer versions are left to other workers.
    """

    @overload
    def __new__(
        cls, name: str, data: type[D], *, upgrade: Upgrades | None = None, **options: Unpack[JobOptions]
    ) -> JobType[D, Any]: ...
    @overload
    def __new__(
        cls,
        name: str,
        data: type[D],
        result: type[R],
        *,
        upgrade: Upgrades | None = None,
        **options: Unpack[JobOptions],
    ) -> JobType[D, R]: ...
    @overload
    def __new__(
        cls, name: str, data: type[D], result: None, *, upgrade: Upgrades | None = None, **options: Unpack[JobOptions]
    ) -> JobType[D, None]: ...
    def __new__(
        cls,
        name: str,
        data: Any,
        result: Any = Any,
        *,
        upgrade: Upgrades | None = None,
        **options: Unpack[JobOptions],
    ) -> JobType[Any, Any]:
        self = super().__new__(cls)
        self.name = job_name(name)
        self.data = _shape(name, "data", data)
        self.result = _shape(name, "result", result)
        if "id" in options:
            raise InvalidOption("id", "is for a single job, not for all of a type")
        read_options(options)
        self.options = options
        self.version = options.get("version", 1)
        self.upgrades = checked_upgrades(self.name, self.version, upgrade)
        return self

    name: str
    data: Shape[D]
    result: Shape[R]
    options: JobOptions
    version: int
    """Of its data."""
    upgrades: Mapping[int, Upgrade]
    """From each older version to the next."""

    def __repr__(self) -> str:
        return f"<JobType {self.name!r} from {self.data!r} to {self.result!r}>"

    async def add(self, queue: Queue, data: D, *, tx: object = None, **options: Unpack[JobOptions]) -> JobHandle[R]:
        """Stores a job of this type. Raises `InvalidArguments` for other data, and stores nothing then."""
        return await queue.add_call(self.call(data, **options), tx=tx)

    def add_sync(self, queue: Queue, data: D, *, tx: object = None, **options: Unpack[JobOptions]) -> SyncJobHandle[R]:
        """`add` for code without an event loop."""
        refuse_on_a_loop("await job_type.add(queue, ...)")
        return queue.sync.add_call(self.call(data, **options), tx=tx)

    async def get(self, queue: Queue, id: str) -> FoundJob[R] | None:
        """A job of this type by its id, with a typed result; None if it does not exist."""
        job = await queue.get(id)
        return None if job is None or job.name != self.name else job.typed(self.result.load)

    def get_sync(self, queue: Queue, id: str) -> SyncFoundJob[R] | None:
        """`get` for code without an event loop."""
        job = run(self.get(queue, id))
        return None if job is None else job.sync

    def call(self, data: D, **options: Unpack[JobOptions]) -> Call[R]:
        """The job that `add` would store, for `queue.add_many`."""
        if "version" in options:
            raise InvalidOption("version", f"is that of the job type, {self.version}: use queue.add for another")
        read_options(options)
        plain = self.data.dump(data, "data")
        try:
            self.data.load(plain)
        except (msgspec.ValidationError, UnicodeError) as wrong:
            raise InvalidArguments(self.name, listed(wrong_values(wrong)), repr(self.data)) from None
        return Call(self.name, plain, {**self.options, **options}, self.result.load)


def _shape(name: str, what: str, annotation: Any) -> Shape[Any]:
    try:
        return Shape(annotation)
    except Exception as wrong:  # noqa: BLE001 - an annotation may be any object
        raise InvalidInput(
            f"the {what} of job type {name!r} cannot be {shown(annotation)}: {error_text(wrong)}"
        ) from None
