"""What becomes of a job whose lock ran out: the rule of a stall, and the words for it.

A process that dies takes all of its jobs along, and one of them may be what killed it. Which one is not known, as long
as they ran side by side. So a job is given up only for a stall that no other can have caused: of an attempt that ran
alone in its process. Workers isolate the jobs that may not stall again (`worker/quarantine.py`), and say so to the
store; claims that say nothing of it count as alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from .instants import Instant, moment_of

OnStalled: TypeAlias = Literal["requeue", "fail"]
"""What becomes of a job whose lock ran out."""

StallVerdict: TypeAlias = Literal["waits", "spared", "too often", "last attempt", "at once"]
"""`waits` and `spared` go back to waiting, and a spared stall uses no attempt; for the others the job fails."""

GIVEN_UP: Final[dict[StallVerdict, str]] = {
    "too often": "stalled more than allowable limit",
    "last attempt": "stalled and so used its last attempt",
    "at once": "stalled, and on_stalled is 'fail'",
}
"""How the reason of a job begins that is given up."""


def judge_stall(
    *,
    stalled_count: int,
    attempts_made: int,
    attempts: int,
    is_alone: bool,
    max_stalled_count: int,
    on_stalled: OnStalled,
    counts_as_attempt: bool,
) -> StallVerdict:
    """The counts are those before this stall. A job that never stalled before has only its own rules to blame."""
    if on_stalled == "fail":
        return "at once"
    ends: StallVerdict = "waits"
    if stalled_count + 1 > max_stalled_count:
        ends = "too often"
    elif counts_as_attempt and attempts_made + 1 >= attempts:
        ends = "last attempt"
    return "spared" if ends != "waits" and stalled_count > 0 and not is_alone else ends


def stall_reason(
    verdict: StallVerdict, worker: str | None, renewed_at: Instant | None, ends: Mapping[str, str] | None = None
) -> str:
    """`ends` says of processes how they ended, as in `StallRules`."""
    renewed = moment_of(renewed_at)
    when = renewed.isoformat(timespec="milliseconds").replace("+00:00", "Z") if renewed else "an unknown time"
    end = (ends or {}).get(process_of(worker or ""))
    how = f"{end} and " if end else ""
    return f"{GIVEN_UP.get(verdict, 'stalled')}: worker {worker or 'unknown'} {how}last renewed its lock at {when}"


def process_of(worker: str) -> str:
    """The part of a worker's id that names its process: what stands before the last colon."""
    return worker.rpartition(":")[0]
