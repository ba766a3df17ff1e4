"""Encoding of claims, and decoding of the jobs that they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from ...job.extras import Extras
from ...job.flows import Parent
from ...job.instants import LAST_INSTANT, Instant
from ...job.options import StoredOptions
from ...job.record import JobRecord
from ...job.retention import KEEP_FAILED
from ...job.stalls import GIVEN_UP
from ...store.commands import Claim
from ...store.values import Claimed
from .marking import Written, marks_read
from .parameters import NULL, Parameter, boolean, number, numbers, text, texts

as_json: Final = msgspec.json.Encoder().encode

_NO_OPTIONS: Final = StoredOptions()
DEFAULTS: Final[Parameter] = numbers(
    (
        _NO_OPTIONS.attempts,
        _NO_OPTIONS.stack_traces,
        KEEP_FAILED.age,
        KEEP_FAILED.count,
    )
)
"""Option defaults, for verbs that end a job without its worker."""

GIVEN_UP_FOR: Final[Parameter] = texts([GIVEN_UP["too often"], GIVEN_UP["last attempt"], GIVEN_UP["at once"]])
"""Beginnings of the reasons of jobs that are given up, as `sql/lib/recover_stalled.sql` takes them."""

_Past = tuple[
    int, int, int, str | None, str | None, tuple[str, ...] | None, tuple[Parent, ...] | None, int | None, Extras | None,
    Written | None,
]  # fmt: skip
_past: Final[Callable[[str], _Past]] = msgspec.json.Decoder(_Past).decode
_FRESH: Final[_Past] = (0, 1, 0, None, None, None, None, None, None, None)


def extras_text(extras: Extras | None) -> str | None:
    return None if extras is None else as_json(extras).decode()


def request_of(request: Claim | None) -> tuple[Parameter, ...]:
    if request is None:
        return NULL, NULL, NULL, NULL, NULL, NULL, NULL
    return (
        text(request.token),
        text(request.worker),
        number(request.limit),
        number(min(request.lock, LAST_INSTANT)),
        texts(request.names),
        boolean(request.repeat),
        boolean(request.isolates),
    )


def claimed_of(request: Claim, now: Instant, again_at: Instant | None, jobs: Sequence[Any]) -> Claimed:
    """The jobs in the arrays that `sql/lib/claim_jobs.sql` returns."""
    ids, names, datas, options, priorities, orders, created, pasts, held = jobs
    if ids is None:
        return Claimed([], now, again_at)
    queue, token, worker = request.queue, request.token, request.worker
    until = now + min(request.lock, LAST_INSTANT)
    if options is None and priorities is None and pasts is None:
        return Claimed(
            [
                JobRecord(
                    queue, id, name, data, "{}", "active", 0, order, at, 0, 1, 0, None, token, worker, now, now, until
                )
                for id, name, data, order, at in zip(ids, names, datas, orders, created, strict=True)
            ],
            now,
            again_at,
        )
    found: list[JobRecord] = []
    for n, id in enumerate(ids):
        past = _past(pasts[n]) if pasts else _FRESH
        made, started, stalled, reason, progress, tags, parents, children, extras, marks = past
        started_at, renewed_at, lock_until = held[n] if held else (now, now, until)
        found.append(
            JobRecord(
                queue,
                id,
                names[n],
                datas[n],
                options[n] if options else "{}",
                "active",
                priorities[n] if priorities else 0,
                orders[n],
                created[n],
                made,
                started,
                stalled,
                None,
                token,
                worker,
                started_at,
                renewed_at,
                lock_until,
                None,
                None,
                reason,
                progress,
                None,
                tags or (),
                parents or (),
                children or 0,
                extras,
                marks_read(marks) if marks else (),
            )
        )
    return Claimed(found, now, again_at)
