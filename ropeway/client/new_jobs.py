"""From the arguments of users to `NewJob`, as stores take it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Protocol, SupportsIndex, TypeAlias, TypeGuard, TypeVar

import msgspec
from msgspec.structs import replace

from ..errors import InvalidInput, InvalidOption
from ..job.codec import Json, JsonText, encode
from ..job.dead_letters import check_dead_letter
from ..job.dedupe import Dedupe, DedupeRule, dedupe_key
from ..job.extras import Extras
from ..job.failure import REASON_LIMIT
from ..job.flows import Parent, Policy, policy_or_none
from ..job.ids import new_id
from ..job.options import JobOptions, Placement, read_options
from ..job.record import NewJob
from ..job.webhook_options import Webhook, rule_of
from ..job.webhooks import check_webhook
from ..showing import shown
from ..webhooks.records import environment_hosts
from .inputs import Input, refuse_unfilled
from .results import R, R_co

if TYPE_CHECKING:
    from .flows import FlowHandle
    from .sync_flows import SyncFlowHandle

T_co = TypeVar("T_co", covariant=True)

PROGRESS_LIMIT: Final = 64 * 1024
# Shared: most of a large bulk would otherwise be empty dicts.
_NO_INPUTS: Final[Mapping[str, Input]] = MappingProxyType({})
_NO_OPTIONS: Final[JobOptions] = {}
_NO_EXTRAS: Final = Extras()


class Call(msgspec.Struct, Generic[R_co], frozen=True, gc=False):
    """A job that is not added yet: `task.call(...)`, for `queue.add_many`."""

    # `gc=False`: nothing that it holds leads back to it.

    name: str
    data: Json = None
    options: JobOptions = {}
    read_result: Callable[[Json], R_co] | None = None
    """Converts the stored result to the task's return type."""
    queue: Any = None
    """The `Queue` of the task, for `add`; None for a call of a job type."""
    earlier: tuple[tuple[Call[Any], Policy | None], ...] = ()
    """The calls that run before it, by `after`."""
    inputs: Mapping[str, Input] = _NO_INPUTS
    """Parameters that take the result of a job before it."""

    def __repr__(self) -> str:
        return f"<Call {self.name!r}>" if self.queue is None else f"<Call {self.name!r} of {self.queue.name!r}>"

    def __await__(self) -> Generator[Any, None, NoReturn]:
        raise InvalidInput(f"{self!r} is not added yet: use `await call.add()`")

    def after(self, *calls: Call[Any], on_child_failure: Policy | None = None) -> Call[R_co]:
        """The same job, to run when these jobs have ended: `report.call(42).after(fetch.call("db"))`.

        `on_child_failure` says what becomes of it if one of these fails; it fails, unless you say otherwise.
        """
        for position, call in enumerate(calls):
            if not isinstance(call, Call):
                raise InvalidInput(f"argument {position} is {shown(call)}: give what task.call(...) answers")
        policy = policy_or_none("on_child_failure", on_child_failure)
        return replace(self, earlier=(*self.earlier, *((call, policy) for call in calls)))

    async def add(self, *, tx: object = None) -> FlowHandle[R_co]:
        """Stores the job and all that run before it, or none of them."""
        handle: FlowHandle[R_co] = await self._queue("await queue.add_flow(call)").add_flow(self, tx=tx)
        return handle

    def add_sync(self, *, tx: object = None) -> SyncFlowHandle[R_co]:
        """`add` for code without an event loop."""
        handle: SyncFlowHandle[R_co] = self._queue("queue.sync.add_flow(call)").sync.add_flow(self, tx=tx)
        return handle

    def _queue(self, instead: str) -> Any:
        if self.queue is None:
            raise InvalidInput(f"this call knows no queue: use {instead}")
        return self.queue


Named: TypeAlias = tuple[str, Json] | tuple[str, Json, JobOptions]
JobRequest: TypeAlias = Call[R] | tuple[str, Json] | tuple[str, Json, JobOptions] | str
"""An item of `add_many`: `task.call(...)`; a name and data; a name, data and options; or a name alone."""


class Several(Protocol[T_co]):
    """A list or another sequence; not text or a mapping, which are iterable too but given by mistake."""

    def __iter__(self) -> Iterator[T_co]: ...

    def __contains__(self, item: object, /) -> bool: ...

    def __getitem__(self, index: SupportsIndex, /) -> T_co: ...


def is_named(request: object) -> TypeGuard[tuple[str, Json, JobOptions]]:
    """True for a name, data and a dict of options."""
    return type(request) is tuple and len(request) == 3 and type(request[0]) is str and type(request[2]) is dict


def call_of(request: JobRequest[R], position: int) -> Call[R]:
    # The most common forms first; a match statement takes three times as long.
    if type(request) is tuple and len(request) == 2 and type(request[0]) is str:
        return Call(*request, _NO_OPTIONS)
    if is_named(request):
        return Call(*request)
    match request:
        case (str(name), data):
            return Call(name, data)
        case (str(name), data, Mapping() as options):
            return Call(name, data, {**options})  # type: ignore[typeddict-item]  # read_options checks it
        case Call():
            return lone_call(checked_call(request))
        case str(name):
            return Call(name)
    raise InvalidInput(
        f"item {position} is {shown(request)}: use (name, data), (name, data, options) or task.call(...)"
    )


def refuse_misplaced(arguments: Sequence[object]) -> NoReturn:
    """Refuses arguments of `add` behind the data, such as a dict of options."""
    given = arguments[0]
    options = [key for key in given if isinstance(key, str)] if isinstance(given, Mapping) else []
    example = ", ".join(f"{option}=..." for option in options or ["delay"])
    raise InvalidInput(
        f"add takes a name and data, and options by their names, and not {shown(given)}: use add(name, data, {example})"
    )


def checked_call(given: Call[R]) -> Call[R]:
    if not isinstance(given, Call):
        raise InvalidInput(f"this takes the answer of task.call(...), and not {shown(given)}")
    if not isinstance(given.options, Mapping):
        raise InvalidInput(f"the options of a Call are a dict, and not {shown(given.options)}")
    return given


def lone_call(given: Call[R]) -> Call[R]:
    """Refuses a call that is a flow, or needs one."""
    if given.earlier:
        raise InvalidInput(f"{given.name!r} runs after other jobs, so it is a flow: use call.add() or queue.add_flow")
    if given.inputs:
        refuse_unfilled(given.name, given.inputs)
    return given


def reason_text(given: object) -> str | None:
    """The reason of a cancellation, as text that every store can hold."""
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
    parents: tuple[Parent, ...] = (),
    webhook: Webhook | None = None,
) -> NewJob:
    """`webhook` is that of the queue."""
    if defaults:
        options = {**defaults, **options}
    if not options and webhook is None:
        return plain_job(queue, name, data, size_limit, parents)
    text = encode(data, "data", size_limit)
    if webhook is None and len(options) == 1 and type(key := options.get("dedupe")) is str:
        # The usual way to deduplicate, in half the time.
        keyed = Extras(None, None, None, DedupeRule(dedupe_key(key)))
        return NewJob(queue, new_id(), name, text, "{}", 0, False, 0, None, True, (), parents, (), keyed)
    placement, stored = read_options(options, beside_data=True)
    id = placement.id or new_id()
    delay = placement.delay
    has_extras = placement.has_extras or webhook is not None
    extras = _extras(placement, queue, id, name, text, webhook) if has_extras else None
    if extras is not None and extras.dedupe is not None and extras.dedupe.mode == "debounce":
        if delay or placement.due_at is not None:
            raise InvalidOption("delay", 'is given by the ttl of Dedupe(mode="debounce"): leave it out')
        delay = extras.dedupe.ttl
    return NewJob(
        queue,
        id,
        name,
        text,
        stored,
        placement.priority,
        placement.lifo,
        delay,
        placement.due_at,
        not placement.id,
        placement.tags,
        parents,
        extras=extras,
    )


def plain_job(queue: str, name: str, data: Json, size_limit: int, parents: tuple[Parent, ...] = ()) -> NewJob:
    """A job without options, as most are. `name` is checked already."""
    # By position, which costs half as much.
    return NewJob(queue, new_id(), name, encode(data, "data", size_limit), "{}", 0, False, 0, None, True, (), parents)


def _extras(
    placement: Placement, queue: str, id: str, name: str, data: JsonText, of_queue: Webhook | None
) -> Extras | None:
    dedupe = placement.dedupe
    if isinstance(dedupe, Dedupe):
        dedupe = dedupe.rule(name, data)
    if placement.dead_letter is not None:
        check_dead_letter(placement.dead_letter, queue, id)
    webhook = rule_of(placement.webhook, of_queue, environment_hosts())
    if webhook is not None:
        check_webhook(queue, id)
    extras = Extras(placement.start_within, placement.start_by, placement.dead_letter, dedupe, webhook=webhook)
    return None if extras == _NO_EXTRAS else extras
