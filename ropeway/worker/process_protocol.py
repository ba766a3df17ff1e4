"""The protocol between a worker and its handler processes: one JSON message per line."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from .. import errors
from ..errors import InvalidPayload, RopewayError
from ..job.codec import Json, JsonText, encode
from ..job.failure import Failure
from ..job.flows import Policy
from ..job.instants import Instant, Milliseconds
from ..job.marks import Mark
from ..job.record import JobRecord
from .described_flows import Graph

LINE_LIMIT: Final = 64 * 1024 * 1024


class PhaseStart(msgspec.Struct, frozen=True):
    """A phase that runs in the process."""

    name: str
    number: int
    """From 0."""
    total: int
    results: dict[str, JsonText] = {}
    """Of the phases before it."""
    last_progress: Json = None


class Start(msgspec.Struct, tag="start", frozen=True):
    """To the process: run this job."""

    record: JobRecord
    size_limit: int
    phase: PhaseStart | None = None
    """Only this phase of its pipeline."""


class Refusal(msgspec.Struct, frozen=True):
    """An error of this package, as a message. It is made again of the same class, with those facts that are JSON."""

    kind: str
    text: str
    facts: dict[str, Json] = {}

    @classmethod
    def of(cls, error: RopewayError) -> Refusal:
        return cls(
            type(error).__name__, str(error), {name: fact for name, fact in vars(error).items() if _is_json(fact)}
        )

    def error(self) -> RopewayError:
        kind = getattr(errors, self.kind, None)
        if not isinstance(kind, type) or not issubclass(kind, RopewayError):
            return RopewayError(self.text)
        # Not by its own `__init__`, which would build the text again.
        error = kind.__new__(kind)
        Exception.__init__(error, self.text)
        vars(error).update(self.facts)
        return error


def _is_json(fact: object) -> bool:
    try:
        encode(fact, "fact", LINE_LIMIT)
    except InvalidPayload:
        return False
    return True


class Reply(msgspec.Struct, tag="reply", frozen=True):
    """To the process: the reply to a `Request`."""

    error: Refusal | None = None
    answer: JsonText | None = None


class Update(msgspec.Struct, tag="update", frozen=True):
    """From the process: progress, a log line, or new data."""

    token: str
    """The claim token of the run: a thread that outlived its handler may send updates while another job runs."""
    progress: JsonText | None = None
    log: str | None = None
    data: JsonText | None = None
    marks: tuple[Mark, ...] = ()
    """Results of steps."""


class PhaseProgress(msgspec.Struct, tag="phase", frozen=True):
    """From the process: how far the phase is."""

    token: str
    percent: float


class MayTryAgain(msgspec.Struct, tag="try", frozen=True):
    """From the process: whether a step that failed may be tried again. The answer comes after the pause."""

    token: str
    what: str
    failure: Failure
    pause: float
    """Seconds."""


class Sleep(msgspec.Struct, tag="sleep", frozen=True):
    """From the process: sleep. The answer is by how long to postpone the job; None if the time is over."""

    token: str
    duration: Milliseconds
    name: str | None = None
    due_at: Instant | None = None
    """Until then, whatever the duration says."""


class WaitFor(msgspec.Struct, tag="wait", frozen=True):
    """From the process: wait for a signal. The answer is a `Waited`."""

    token: str
    name: str
    timeout: Milliseconds | None = None


class Waited(msgspec.Struct, frozen=True):
    data: Json = None
    postponed: Milliseconds | None = None
    awaits: str | None = None
    is_late: bool = False
    """True if the timeout has passed."""
    others: tuple[str, ...] = ()
    """Then the signals that came, and that no wait has answered."""


class Gather(msgspec.Struct, tag="gather", frozen=True):
    """From the process: add children and wait for them. The answer are their results; None if they have not ended."""

    token: str
    flows: Graph


class ReadFamily(msgspec.Struct, tag="family", frozen=True):
    """From the process: what is asked about the job's children."""

    token: str
    about: Literal["results", "failures", "counts", "awaited"]


class AddChildren(msgspec.Struct, tag="children", frozen=True):
    """From the process: jobs that this one can wait for. The answer is their ids."""

    token: str
    flows: Graph
    on_child_failure: Policy | None = None


class Ended(msgspec.Struct, tag="ended", frozen=True):
    """From the process: how the handler ended."""

    token: str
    result: JsonText | None = None
    failure: Failure | None = None
    fatal: bool = False
    refused: bool = False
    """True if the job's data does not fit the handler's signature."""
    postponed: Milliseconds | None = None
    awaits_children: bool = False
    """True if it is postponed until its children have ended."""
    awaits: str | None = None
    """The mark until which it is postponed."""
    late_signals: tuple[str, ...] = ()
    failed_steps: tuple[str, ...] = ()
    """Those of the `SignalTimeout` that the failure was raised from."""
    is_signal_timeout: bool = False
    """True if the failure is itself one, of the first of them."""
    memory: int = 0
    """Most bytes that the process has used so far."""


Request: TypeAlias = Update | PhaseProgress | MayTryAgain | Sleep | WaitFor | Gather | ReadFamily | AddChildren
ToProcess: TypeAlias = Start | Reply
FromProcess: TypeAlias = Request | Ended

_encode = msgspec.json.Encoder().encode
read_order = msgspec.json.Decoder(ToProcess).decode
read_report = msgspec.json.Decoder(FromProcess).decode


def encode_line(message: ToProcess | FromProcess) -> bytes:
    return _encode(message) + b"\n"
