"""Options of jobs as JSON has them, and their reading as those of `Queue.add`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import InvalidOption
from ..job.backoff import Backoff, Kind
from ..job.codec import Json
from ..job.dedupe import Dedupe, DedupeMode
from ..job.flows import Policy
from ..job.retention import Keep, KeepOption
from ..job.webhook_options import EVENTS, Webhook

Span = int | float | str
"""A duration: seconds, or text such as "5 minutes"."""


class BackoffFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The delay before the next attempt."""

    kind: Kind
    delay: Span = 0
    max_delay: Span | UnsetType = UNSET
    jitter: float = 0.0
    name: str = ""
    """Of a `custom` one: the function that workers in Python were given under it."""

    def read(self) -> Backoff:
        longest = {} if self.max_delay is UNSET else {"max_delay": self.max_delay}
        match self.kind:
            case "fixed":
                return Backoff.fixed(self.delay, jitter=self.jitter)
            case "linear":
                return Backoff.linear(self.delay, jitter=self.jitter, **longest)
            case "exponential":
                return Backoff.exponential(self.delay, jitter=self.jitter, **longest)
            case "custom":
                return Backoff.custom(self.name)


class KeepFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long, and how many of, finished jobs are kept."""

    age: Span | None = None
    count: int | None = None


class DedupeFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without a key, it is made of the job's type and payload."""

    key: str | None = None
    mode: DedupeMode = "until-final"
    ttl: Span | None = None

    def read(self) -> Dedupe:
        if self.key is None:
            return Dedupe.by_data(self.mode, ttl=self.ttl)
        return Dedupe(self.key, self.mode, ttl=self.ttl)


class WebhookFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the end of a job is reported."""

    url: str
    events: tuple[str, ...] = EVENTS
    """Of "completed", "failed" and "cancelled"."""

    def read(self) -> Webhook:
        return Webhook(self.url, events=self.events)


class JobFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to be made: its type, payload and options."""

    type: str
    """Which function of a worker runs it."""
    payload: Json = None
    """What that function is given; any JSON."""
    max_attempts: int | UnsetType = UNSET
    """Attempts, including the first; the server's default is 3."""
    priority: int | UnsetType = UNSET
    """Lower goes first; -2^21 to 2^21, default 0."""
    lifo: bool | UnsetType = UNSET
    """Newest first: ahead of every other job of its priority."""
    backoff: BackoffFields | Span | UnsetType | None = UNSET
    """Delay before the next attempt; a duration is a fixed one."""
    timeout: Span | UnsetType | None = UNSET
    """Time limit of one attempt, which workers in Python keep."""
    remove_on_complete: bool | int | KeepFields | UnsetType = UNSET
    """Retention of a completed job: true to remove it at once, a count, an age and count, false for ever."""
    remove_on_fail: bool | int | KeepFields | UnsetType = UNSET
    """Retention of a failed or cancelled job."""
    drop_exhausted: bool | UnsetType = UNSET
    """The same as `remove_on_fail` true: nothing is kept of a job whose attempts are used up."""
    tags: tuple[str, ...] | UnsetType = UNSET
    """Tags to find it by."""
    max_starts: int | UnsetType = UNSET
    """Most starts of the job, including those after releases and lapsed heartbeats."""
    keep_logs: int | UnsetType = UNSET
    """Number of log lines kept with the job, the newest."""
    stack_traces: int | UnsetType = UNSET
    """Number of failed attempts kept with the job, the newest."""
    expires: Span | UnsetType | None = UNSET
    """Time from now within which it must be started: otherwise it fails."""
    dead_letter: str | UnsetType | None = UNSET
    """The queue that gets a copy of the job if it fails for good."""
    webhook: WebhookFields | str | UnsetType | None = UNSET
    """Where its end is reported: a URL, or one with events; null for nowhere, whatever its queue says."""
    version: int | UnsetType = UNSET
    """The version of its payload, for job types in Python that have several; default 1."""


class Submission(JobFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to be added."""

    id: str | None = None
    """A second submission with the same id finds the first job."""
    delay: Span | UnsetType | None = UNSET
    """Time to wait before it may start."""
    run_at: datetime | UnsetType = UNSET
    """The instant, with a time zone, to wait for; instead of `delay`."""
    expires_at: datetime | UnsetType = UNSET
    """The instant by which it must be started; instead of `expires`."""
    dedupe: DedupeFields | str | UnsetType | None = UNSET
    """Adds it only if no other job holds the same key."""


class FlowFields(Submission, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that waits for its children."""

    queue: str | None = None
    """That of its parent, unless you name another."""
    children: tuple[FlowFields, ...] = ()
    on_child_failure: Policy | None = None
    """What becomes of this job if a child fails."""
    on_failure: Policy | None = None
    """What becomes of its parent if this job fails."""


_RENAMED: Final = {"max_attempts": "attempts", "run_at": "delay", "expires_at": "expires"}
_NO_OPTIONS: Final = frozenset(
    {"type", "payload", "drop_exhausted", "queue", "children", "on_child_failure", "on_failure"}
)


def options_of(job: JobFields, defaults: Mapping[str, Any], *, attempts: int, drops: bool) -> dict[str, Any]:
    """The options for `Queue.add`. `defaults` are those of the queue, `attempts` and `drops` of the server."""
    options: dict[str, Any] = {}
    for field in job.__struct_fields__:
        value = getattr(job, field)
        if field in _NO_OPTIONS or value is UNSET or (field == "id" and value is None):
            continue
        name = _RENAMED.get(field, field)
        if name in options:
            raise InvalidOption(field, f"and {name!r} were both given: give one of them")
        options[name] = _READERS.get(field, _as_it_is)(value)
    if "attempts" not in options and "attempts" not in defaults:
        options["attempts"] = attempts
    drops_this = drops if job.drop_exhausted is UNSET else job.drop_exhausted
    if drops_this and "remove_on_fail" not in options and "remove_on_fail" not in defaults:
        options["remove_on_fail"] = True
    return options


def queues_of(job: JobFields) -> set[str]:
    """The other queues that a job names: of its dead letter, and of its children."""
    found = {job.dead_letter} if isinstance(job.dead_letter, str) else set()
    if isinstance(job, FlowFields):
        found |= {job.queue} if job.queue is not None else set()
        found |= {queue for child in job.children for queue in queues_of(child)}
    return found


def _as_it_is(value: Any) -> Any:
    return value


def _read_keep(value: bool | int | KeepFields) -> KeepOption:
    return Keep(value.age, value.count) if isinstance(value, KeepFields) else value


def _read_fields(value: Any) -> Any:
    return value.read() if isinstance(value, BackoffFields | DedupeFields | WebhookFields) else value


_READERS: Final = {
    "backoff": _read_fields,
    "dedupe": _read_fields,
    "remove_on_complete": _read_keep,
    "remove_on_fail": _read_keep,
    "webhook": _read_fields,
}
