"""The options of a job, as users write them (`JobOptions`) and as they are stored."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Literal, TypedDict

import msgspec
from msgspec.structs import replace

from ..errors import InvalidDuration, InvalidOption
from ..showing import LONGEST_VALUE, shown
from .backoff import Backoff
from .choices import yes_or_no
from .codec import JsonText
from .dedupe import Dedupe, DedupeRule, dedupe_key
from .durations import Duration, milliseconds
from .instants import Instant, Milliseconds, due_instant_of
from .names import job_id, queue_name, tag_name
from .numbers import LEAST_URGENT, MOST_URGENT, whole
from .retention import KeepOption, Retention, retention
from .webhook_options import Webhook, read_webhook

LOG_LINES: Final = 1_000
STACK_TRACES: Final = 10
MOST_ATTEMPTS: Final = 1_000_000
MOST_TAGS: Final = 10
MOST_VERSIONS: Final = 1_000_000


class JobOptions(TypedDict, total=False):
    """Options of `add`."""

    id: str | None
    """The job's id: a second add with the same id finds the first job."""
    delay: Duration | datetime | None
    """Time to wait, or the instant (with a time zone) to wait for; None for no delay."""
    priority: int
    """Lower goes first; -2^21 to 2^21, default 0."""
    lifo: bool
    """Newest first: ahead of every other job of its priority."""
    attempts: int
    """Number of attempts, including the first."""
    backoff: Backoff | Duration | None
    """Delay before the next attempt: a `Backoff`, a duration for a fixed delay, or None for no delay."""
    timeout: Duration | None
    """Time limit of one attempt; None for no limit."""
    remove_on_complete: KeepOption
    """Retention of a completed job: True or 0 to remove it at once, a count, `Keep(age=, count=)`, False for ever."""
    remove_on_fail: KeepOption
    """Retention of a failed or cancelled job, as for `remove_on_complete`."""
    tags: Iterable[str]
    """Tags to find it by: up to 10, of up to 64 characters each."""
    max_starts: int
    """Most starts of the job, including those after postponements and stalls."""
    keep_logs: int
    """Number of log lines kept with the job, the newest."""
    stack_traces: int
    """Number of failed attempts kept with the job, the newest."""
    expires: Duration | datetime | None
    """Time, from the add, or the instant by which it must be started: otherwise it fails."""
    dead_letter: str | None
    """The queue that gets a copy of the job if it fails for good."""
    dedupe: Dedupe | str | None
    """Adds it only if no other job holds the same key: a `Dedupe`, or a key to hold until the job is final."""
    webhook: Webhook | str | Literal[False] | None
    """Where its end is reported: a URL, or a `Webhook`; None or False for nowhere, whatever its queue says."""
    version: int
    """The version of its data, for a `JobType` that has several; 1 by default."""


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """What fills a parameter of a task: the results of these children (queue and id), or of the first ones."""

    many: bool
    children: tuple[tuple[str, str], ...] | None = None
    first: int = 0
    """Without `children`: how many it was added with. Those that it got at run time come behind them."""


class StoredOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Options stored with the job as one text, which stores do not decode on the hot path."""

    attempts: int = 1
    backoff: Backoff | None = None
    timeout: Milliseconds | None = None
    keep_completed: Retention | None = None
    """None: the worker's setting, which defaults to `KEEP_COMPLETED`."""
    keep_failed: Retention | None = None
    """None: the worker's setting; `KEEP_FAILED` by default, and for jobs that end without a worker."""
    max_starts: int | None = None
    keep_logs: int = LOG_LINES
    stack_traces: int = STACK_TRACES
    takes: dict[str, Taken] | None = None
    """The parameters that are filled with results of the job's children."""
    phases: tuple[str, ...] | None = None
    """The phases of its pipeline, if that was known where it was added; for readers, until it starts."""
    delay: Milliseconds | None = 0
    """With which it was added, so that workers know since when it waits; None: until an instant."""
    version: int = 1
    """Of its data."""


class Placement(msgspec.Struct, frozen=True):
    """The options that stores read: a job's id, position and tags, and those that become its `Extras`."""

    id: str | None = None
    delay: Milliseconds = 0
    due_at: Instant | None = None
    priority: int = 0
    lifo: bool = False
    tags: tuple[str, ...] = ()
    start_within: Milliseconds | None = None
    start_by: Instant | None = None
    dead_letter: str | None = None
    dedupe: Dedupe | DedupeRule | None = None
    """A rule if the key alone was given, because most are."""
    webhook: Webhook | str | bool | None = None
    """False for none, None for that of the queue."""

    @property
    def has_extras(self) -> bool:
        return (
            self.dedupe is not None
            or self.start_within is not None
            or self.start_by is not None
            or self.dead_letter is not None
            or self.webhook is not None
        )


_PLACED: Final = frozenset(Placement.__struct_fields__)


def priority_of(given: object) -> int:
    return whole("priority", given, MOST_URGENT, LEAST_URGENT)


_NO_OPTIONS: Final = (Placement(), "{}")
"""What `read_options` returns for none."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StoredOptions).decode


def read_options(options: Mapping[str, Any], *, beside_data: bool = False) -> tuple[Placement, JsonText]:
    """Checks the options of one job; returns those that stores read, and the others as stored text.

    `beside_data` is for errors: an unknown option may have been meant for the data that is given in the same call.
    """
    if not options:
        return _NO_OPTIONS
    placed: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    for option, value in options.items():
        try:
            reader = _READERS[option]
        except KeyError:
            raise _unknown(option, beside_data=beside_data) from None
        field, read = reader(option, value)
        (placed if field in _PLACED else stored)[field] = read
    if "due_at" in placed:
        stored["delay"] = None
    elif delay := placed.get("delay"):
        stored["delay"] = delay
    return Placement(**placed), _encode(StoredOptions(**stored)).decode() if stored else "{}"


def refuse_unknown(options: Iterable[str], *, also: Iterable[str], beside_data: bool = False) -> None:
    """For calls that take further options, `also`: an option that is misspelt may have been meant as one of these."""
    for option in options:
        if option not in _READERS:
            raise _unknown(option, also, beside_data=beside_data)


def with_phases(options: JsonText, phases: tuple[str, ...]) -> JsonText:
    return _encode(replace(_decode(options), phases=phases)).decode()


@lru_cache(maxsize=1024)
def stored_options(text: JsonText) -> StoredOptions:
    """Decodes stored options; cached, because most jobs of a queue have the same ones."""
    return _decode(text)


def readable_options(text: JsonText) -> StoredOptions:
    """For stores: damaged options count as none, because one bad job must not stop its queue."""
    try:
        return stored_options(text)
    except msgspec.MsgspecError:
        return StoredOptions()


_ELSEWHERE: Final = {
    "_defer_by": "delay",
    "_defer_until": "delay",
    "_job_id": "id",
    "at_front": "lifo",
    "countdown": "delay",
    "callback": "webhook",
    "callback_url": "webhook",
    "crontab": "cron",
    "deduplication": "dedupe",
    "eta": "delay",
    "expire": "expires",
    "failure_ttl": "remove_on_fail",
    "interval": "every",
    "jobId": "id",
    "job_id": "id",
    "keep_result": "remove_on_complete",
    "max_attempts": "attempts",
    "max_retries": "attempts",
    "pattern": "cron",
    "result_expires": "remove_on_complete",
    "result_ttl": "remove_on_complete",
    "retries": "attempts",
    "retry": "attempts",
    "run_at": "delay",
    "task_id": "id",
    "time_limit": "timeout",
    "timezone": "tz",
    "unique": "dedupe",
    "unique_key": "dedupe",
    "webhook_url": "webhook",
}
"""Names of options in other job queues."""


def _unknown(option: object, also: Iterable[str] = (), *, beside_data: bool) -> InvalidOption:
    known = [*also, *_READERS]
    word = option[:LONGEST_VALUE] if isinstance(option, str) else ""
    known_as = _ELSEWHERE.get(word)
    near = [known_as] if known_as in known else difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    tail = " (what the handler needs goes into data)" if beside_data else ""
    return InvalidOption(str(option), f"is unknown; {hint}{tail}")


def _whole(least: int, most: int) -> Callable[[str, Any], tuple[str, Any]]:
    return lambda option, value: (option, whole(option, value, least, most))


def _read_delay(option: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, datetime):
        # One in the past is due now: any instant may have passed by the time of the call.
        return "due_at", due_instant_of(value, option)
    return option, 0 if value is None else milliseconds(value, option)


def read_backoff(option: str, value: Any) -> tuple[str, Backoff | None]:
    if value is None or isinstance(value, Backoff):
        return option, value
    if callable(value):
        raise InvalidOption(
            option,
            "cannot be a function, which no store can keep: give it to the worker as "
            'backoffs={"name": function} and use Backoff.custom("name") here',
        )
    if isinstance(value, int | float | timedelta) and not isinstance(value, bool):
        return option, Backoff.fixed(milliseconds(value, option) / 1000)
    try:
        return option, Backoff.fixed(value)
    except InvalidDuration:
        raise InvalidOption(
            option, f"cannot be {shown(value)}: use a duration, or Backoff.exponential(1), .linear(1) or .custom(name)"
        ) from None


def read_backoff_in_place(value: Any) -> Backoff | None:
    """The backoff of a step or a phase, which is tried again within an attempt of its job."""
    advice = "use a duration, or Backoff.exponential(1) or .linear(1)"
    try:
        _, backoff = read_backoff("backoff", value)
    except InvalidOption:
        # Its advice names custom functions, which only attempts of jobs can have.
        raise InvalidOption("backoff", f"cannot be {shown(value)}: {advice}") from None
    if backoff is not None and backoff.kind == "custom":
        raise InvalidOption("backoff", f"cannot be {shown(value)}: {advice}")
    return backoff


def read_timeout(option: str, value: Any) -> tuple[str, Milliseconds | None]:
    limit = None if value is None else milliseconds(value, option)
    if limit == 0:
        raise InvalidOption(option, f"cannot be {shown(value)}: use at least 1 ms, or leave it out for no timeout")
    return option, limit


def _read_tags(option: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidOption(option, f"cannot be {shown(value)}: give a list of words")
    tags = tuple(dict.fromkeys(map(tag_name, islice(value, MOST_TAGS + 1))))
    if len(tags) > MOST_TAGS:
        raise InvalidOption(option, f"cannot be more than {MOST_TAGS}")
    return option, tags


def _read_expires(option: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, datetime):
        return "start_by", due_instant_of(value, option)
    limit = None if value is None else milliseconds(value, option)
    if limit == 0:
        raise InvalidOption(option, f"cannot be {shown(value)}: use at least 1 ms, or leave it out")
    return "start_within", limit


def _read_dedupe(option: str, value: Any) -> tuple[str, Any]:
    if value is None or isinstance(value, Dedupe):
        return option, value
    if isinstance(value, str):
        return option, DedupeRule(dedupe_key(value))
    raise InvalidOption(option, f"cannot be {shown(value)}: use a key, or Dedupe(key, mode=..., ttl=...)")


_READERS: Final[dict[str, Callable[[str, Any], tuple[str, Any]]]] = {
    "id": lambda option, value: (option, None if value is None else job_id(value)),
    "delay": _read_delay,
    "priority": lambda option, value: (option, priority_of(value)),
    "lifo": lambda option, value: (option, yes_or_no(option, value)),
    "attempts": _whole(1, MOST_ATTEMPTS),
    "backoff": read_backoff,
    "timeout": read_timeout,
    "remove_on_complete": lambda option, value: ("keep_completed", retention(option, value)),
    "remove_on_fail": lambda option, value: ("keep_failed", retention(option, value)),
    "tags": _read_tags,
    "max_starts": _whole(1, MOST_ATTEMPTS),
    "keep_logs": _whole(0, 100_000),
    "stack_traces": _whole(0, 1_000),
    "expires": _read_expires,
    "dead_letter": lambda option, value: (option, None if value is None else queue_name(value)),
    "dedupe": _read_dedupe,
    "webhook": read_webhook,
    "version": _whole(1, MOST_VERSIONS),
}
