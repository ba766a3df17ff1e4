"""Stalls: what happens to a job whose lock expired, and how its reason is worded.

A process that dies stalls all of its jobs, and one of them may have killed it. If they ran side by side, nothing shows
which one. So a job is given up only for a stall that no other can have caused: of an attempt that ran alone in its
process. Workers isolate jobs that may not stall again (`worker/quarantine.py`), and mark these attempts in the store;
attempts of claims without `isolates` count as alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from .instants import Instant, moment_of

OnStalled: TypeAlias = Literal["requeue", "fail"]
"""Requeue a stalled job, or fail it."""

StallVerdict: TypeAlias = Literal["waits", "spared", "too often", "last attempt", "at once"]
"""With `waits` and `spared` the job waits again, and a spared stall uses no attempt; with the others it fails."""

GIVEN_UP: Final[dict[StallVerdict, str]] = {
    "too often": "stalled more than allowable limit",
    "last attempt": "stalled and so used its last attempt",
    "at once": "stalled, and on_stalled is 'fail'",
}
"""The beginning of the reason of a job that was given up."""


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
    """Decides about a stall; counts are those before it. `is_alone` matters only if the job stalled before."""
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
    """The reason of a stall, in words. `ends` tells how processes ended, as in `StallRules`."""
    renewed = moment_of(renewed_at)
    when = renewed.isoformat(timespec="milliseconds").replace("+00:00", "Z") if renewed else "an unknown time"
    end = (ends or {}).get(process_of(worker or ""))
    how = f"{end} and " if end else ""
    return f"{GIVEN_UP.get(verdict, 'stalled')}: worker {worker or 'unknown'} {how}last renewed its lock at {when}"


def process_of(worker: str) -> str:
    """The part of a worker's id that names its process: everything before the last colon."""
    return worker.rpartition(":")[0]
