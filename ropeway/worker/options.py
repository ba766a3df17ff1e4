"""The options of a worker, as users write them (`WorkerOptions`) and as the runtime reads them (`Rules`)."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypedDict

import msgspec

from ..client.queue import Queue
from ..errors import InvalidName, InvalidOption
from ..job.backoff import CustomBackoff
from ..job.choices import function_or_none, one_of, yes_or_no
from ..job.durations import Duration, milliseconds
from ..job.instants import Milliseconds
from ..job.names import job_name
from ..job.numbers import whole
from ..job.outcomes import Classify
from ..job.retention import KEEP_COMPLETED, KEEP_FAILED, KeepOption, Retention, retention
from ..job.sizes import size_in_bytes
from ..job.stalls import OnStalled
from ..showing import LONGEST_VALUE, shown
from ..store.values import StallRules
from .retired import RetentionCallback

MOST_CONCURRENCY: Final = 100_000
SHORTEST_LOCK: Final[Milliseconds] = 100
SHORTEST_INTERVAL: Final = 0.05


class WorkerOptions(TypedDict, total=False):
    """Options of `Worker`."""

    concurrency: int
    """Number of jobs to run at once; default 10. Can be changed while it runs."""
    max_global_concurrency: int
    """Sets the queue's limit for all of its workers together: see `Queue.set_global_concurrency`."""
    lock_duration: Duration
    """Duration of a lock; default 30 s. It is renewed at half of it."""
    stalled_interval: Duration
    """Interval of the safety sweep for stalled jobs, beside a timer at the earliest lock expiry; default 5 s."""
    max_stalled_count: int
    """How often a job may stall and wait again; default 1. After that it runs alone, and fails if it stalls then."""
    on_stalled: OnStalled
    """Requeue a stalled job, or fail it at once; default is the queue's setting, else requeue."""
    stall_counts_as_attempt: bool
    """If true, a stall also uses one of the job's attempts; default false."""
    on_invalid: Literal["fail", "remove"]
    """A job whose data does not fit its task fails at once, and is then kept ("fail", the default) or removed."""
    remove_on_complete: KeepOption
    """Retention of completed jobs, unless the job or queue sets it."""
    remove_on_fail: KeepOption
    """Retention of failed jobs, unless the job or queue sets it."""
    grace: Duration
    """Time that a shutdown waits for handlers; default 25 s."""
    cancel_grace: Duration
    """Time that a handler may take to stop once it is interrupted; default 5 s."""
    max_process_jobs: int
    """After this many jobs a process of a handler with `run_in="process"` is replaced; default: never."""
    max_process_memory: int | str
    """A process that needed more memory (bytes, or "512 MB") is replaced when its job has ended; default: never."""
    max_leaked: int
    """After this many handlers that did not stop, the worker ends with an error, so that it can be restarted."""
    classify: Classify
    """Decides per error whether it may be retried; if it returns None, the queue's `classify` decides."""
    backoffs: Mapping[str, CustomBackoff]
    """The functions behind `Backoff.custom(name)`."""
    on_stale: RetentionCallback
    """Called with each job that becomes stale by the queue's retention: see `Queue.set_retention`."""
    on_delete: RetentionCallback
    """Called with each job that the queue's retention has deleted."""
    name: str
    """The worker's name in `queue.workers()` and its log."""
    webhooks: bool | None
    """Whether it delivers webhooks; by default if one of its queues or jobs has one, or deliveries wait."""


class Rules(msgspec.Struct, frozen=True):
    """Checked worker options."""

    concurrency: int = 10
    max_global_concurrency: int | None = None
    lock: Milliseconds = 30_000
    stalled_interval: float = 5.0
    stalls: Mapping[str, Any] = {}
    """The given fields of `StallRules`; the queue may set others."""
    on_invalid: Literal["fail", "remove"] = "fail"
    keep_completed: Retention = KEEP_COMPLETED
    keep_failed: Retention = KEEP_FAILED
    grace: float = 25.0
    cancel_grace: float = 5.0
    max_process_jobs: int | None = None
    max_process_memory: int | None = None
    max_leaked: int | None = None
    classify: Classify | None = None
    backoffs: Mapping[str, CustomBackoff] = {}
    on_stale: RetentionCallback | None = None
    on_delete: RetentionCallback | None = None
    name: str | None = None
    webhooks: bool | None = None

    def stalls_in(self, queue: Queue) -> StallRules:
        said = {**self.stalls}
        if queue.on_stalled is not None:
            said.setdefault("on_stalled", queue.on_stalled)
        return StallRules(**said)


def checked_concurrency(given: object) -> int:
    return whole("concurrency", given, 1, MOST_CONCURRENCY)


def read_worker_options(options: Mapping[str, Any]) -> Rules:
    rules: dict[str, Any] = {}
    stalls: dict[str, Any] = {}
    for option, given in options.items():
        try:
            field, read = _READERS[option]
        except KeyError:
            raise InvalidOption(option, f"is unknown; {_suggestion(option)}") from None
        (stalls if field in StallRules.__struct_fields__ else rules)[field] = read(option, given)
    return Rules(**rules, stalls=stalls)


def _suggestion(option: str) -> str:
    near = difflib.get_close_matches(option[:LONGEST_VALUE], _READERS, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_READERS)}"


def _concurrency(_: str, given: object) -> int:
    return checked_concurrency(given)


def _at_least_one(option: str, given: object) -> int | None:
    return None if given is None else whole(option, given, 1)


def _size(option: str, given: object) -> int | None:
    return None if given is None else size_in_bytes(option, given)


def _count(option: str, given: object) -> int:
    return whole(option, given, 0)


def _lock(option: str, given: Any) -> Milliseconds:
    lock = milliseconds(given, option)
    if lock < SHORTEST_LOCK:
        raise InvalidOption(option, f"cannot be {shown(given)}: use at least {SHORTEST_LOCK / 1000} s")
    return lock


def _seconds(option: str, given: Any) -> float:
    return milliseconds(given, option) / 1000


def _interval(option: str, given: Any) -> float:
    return max(SHORTEST_INTERVAL, _seconds(option, given))


def _name(option: str, given: object) -> str | None:
    try:
        return None if given is None else job_name(given)
    except InvalidName as wrong:
        raise InvalidOption(option, f"cannot be {shown(given)}: {wrong.remedy}") from None


def _backoffs(option: str, given: object) -> Mapping[str, CustomBackoff]:
    if not isinstance(given, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in given.items()):
        raise InvalidOption(option, f"cannot be {shown(given)}: give functions by name")
    return given


_READERS: Final[dict[str, tuple[str, Callable[[str, Any], Any]]]] = {
    "concurrency": ("concurrency", _concurrency),
    "max_global_concurrency": ("max_global_concurrency", _at_least_one),
    "lock_duration": ("lock", _lock),
    "stalled_interval": ("stalled_interval", _interval),
    "max_stalled_count": ("max_stalled_count", _count),
    "on_stalled": ("on_stalled", one_of("requeue", "fail")),
    "on_invalid": ("on_invalid", one_of("fail", "remove")),
    "remove_on_complete": ("keep_completed", retention),
    "remove_on_fail": ("keep_failed", retention),
    "stall_counts_as_attempt": ("counts_as_attempt", yes_or_no),
    "grace": ("grace", _seconds),
    "cancel_grace": ("cancel_grace", _seconds),
    "max_process_jobs": ("max_process_jobs", _at_least_one),
    "max_process_memory": ("max_process_memory", _size),
    "max_leaked": ("max_leaked", _at_least_one),
    "classify": ("classify", function_or_none),
    "backoffs": ("backoffs", _backoffs),
    "on_stale": ("on_stale", function_or_none),
    "on_delete": ("on_delete", function_or_none),
    "name": ("name", _name),
    "webhooks": ("webhooks", lambda option, given: None if given is None else yes_or_no(option, given)),
}
