"""Strategies of the state machine for jobs with extras and for schedules."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from msgspec.structs import replace

from ..job.dedupe import IN_FLOWS, MODES, WITH_TTL, DedupeMode, DedupeRule
from ..job.extras import Extras, WebhookRule
from ..job.marks import Mark, Marking, Notice
from ..job.record import NewJob
from ..job.states import FINAL
from .factories import DAY, ELSEWHERE, MINUTE, NOW, QUEUE, SECOND, new_job

KEYS: Final = ("x", "y")
"""Few, so that most adds meet a job that holds their key."""
SCHEDULES: Final = ("nightly", "hourly")

_keys = st.sampled_from(["x", "x", "y"])
_seldom = st.sampled_from([False, False, False, True])
_marks = st.sampled_from(["step:a", "signal:b"])
_job_ids = st.sampled_from(["a", "b", "c", "d", "e", "f"])


def rules(*modes: DedupeMode) -> st.SearchStrategy[DedupeRule]:
    return st.builds(
        lambda key, mode, ttl: DedupeRule(key, mode, ttl if mode in WITH_TTL else 0),
        _keys,
        st.sampled_from(modes),
        st.sampled_from([SECOND, MINUTE]),
    )


@st.composite
def extras(draw: st.DrawFn, *modes: DedupeMode, queue: str = QUEUE) -> Extras:
    """Extras of a job; without modes it has no key."""
    given: dict[str, Any] = {}
    if modes:
        given["dedupe"] = draw(rules(*modes))
    if draw(_seldom):
        given["start_within"] = draw(st.sampled_from([SECOND, MINUTE]))
    elif draw(_seldom):
        given["start_by"] = NOW + draw(st.sampled_from([SECOND, MINUTE, DAY]))
    if draw(_seldom):
        given["dead_letter"] = ELSEWHERE if queue == QUEUE else QUEUE
    if draw(_seldom):
        given["schedule"] = draw(st.sampled_from(SCHEDULES))
    if draw(_seldom):
        given["webhook"] = WebhookRule("https://example.com/", draw(st.sampled_from([FINAL, ("failed",)])))
    return Extras(**given)


@st.composite
def _job(draw: st.DrawFn, id: str, *, keyed: bool = True) -> NewJob:
    given = draw(extras(*MODES) if keyed else extras())
    delay = draw(st.sampled_from([0, 0, 0, SECOND, MINUTE]))
    if given.dedupe is not None and given.dedupe.mode == "debounce":
        # As clients do.
        delay = given.dedupe.ttl
    return new_job(
        id,
        name=draw(st.sampled_from(["send", "send", "send", "print"])),
        data=draw(st.sampled_from(["1", "2"])),
        delay=delay,
        extras=given,
        remove_on_fail=draw(_seldom),
    )


@st.composite
def bundles(draw: st.DrawFn) -> list[list[NewJob]]:
    """Jobs with extras, together or one by one.

    With different ids: the contract does not say what finds a job that was discarded in the same call.
    """
    ids = draw(st.lists(_job_ids, min_size=1, max_size=3, unique=True))
    jobs = [draw(_job(id, keyed=not draw(_seldom))) for id in ids]
    return [jobs] if draw(st.booleans()) else [[job] for job in jobs]


@st.composite
def with_extras(draw: st.DrawFn, flow: list[NewJob]) -> list[NewJob]:
    """A flow whose first job has a dedupe key, and whose others may expire or leave follow-ups."""
    root, *others = flow
    return [
        replace(root, extras=draw(extras(*IN_FLOWS, queue=root.queue))),
        *(replace(job, extras=draw(extras(queue=job.queue))) if draw(_seldom) else job for job in others),
    ]


@st.composite
def _write(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a `ScheduleWrite`; the machine knows the versions."""
    ids = draw(st.lists(_job_ids, max_size=2, unique=True))
    return {
        "id": draw(st.sampled_from(SCHEDULES)),
        "value": draw(st.sampled_from(['"a"', '"b"', None])),
        "due_in": draw(st.sampled_from([0, SECOND, MINUTE, None])),
        "expect": draw(st.sampled_from([None, "right", "right", "wrong"])),
        "adds": tuple(draw(_job(id, keyed=draw(st.booleans()))) for id in ids),
        "removes": tuple(draw(st.lists(_job_ids, max_size=2, unique=True))),
    }


@st.composite
def _marking(draw: st.DrawFn) -> Marking:
    names = draw(st.lists(_marks, max_size=2, unique=True))
    return Marking(
        tuple(Mark(name, draw(st.sampled_from(["1", '"two"']))) for name in names),
        tuple(draw(st.lists(_marks, max_size=1))),
        tuple(map(Notice, draw(st.lists(st.sampled_from(["phase-started", "phase-completed"]), max_size=3)))),
    )


EXTRA_STEPS: Final[dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]]] = {
    "add_with_extras": (9, {"bundles": bundles()}),
    # What follows from the end of such jobs is rare otherwise.
    "a_job_follows_an_active_one": (2, {"ids": st.lists(_job_ids, min_size=2, max_size=2, unique=True), "key": _keys}),
    "a_job_with_follow_ups_fails": (2, {"id": _job_ids}),
    "settle_and_add": (
        2,
        {
            "move": st.sampled_from(["complete", "complete", "fail", "retry"]),
            "adds": st.tuples(_job_ids.flatmap(_job)),
        },
    ),
    "write_schedules": (3, {"writes": st.lists(_write(), min_size=1, max_size=2)}),
    "read_schedules": (1, {"after": st.none() | st.sampled_from(SCHEDULES), "limit": st.integers(1, 2)}),
    "mark": (
        3,
        {"marking": _marking(), "ids": st.lists(_job_ids, min_size=1, max_size=2), "with_token": st.booleans()},
    ),
    "settle_with_marks": (
        2,
        {
            "move": st.sampled_from(["complete", "fail", "retry", "postpone", "postpone", "hand back"]),
            "marking": _marking(),
            "awaits": st.none() | _marks,
            "delay": st.sampled_from([0, SECOND, DAY]),
        },
    ),
    "retry_and_mark": (1, {"ids": st.lists(_job_ids, min_size=1, max_size=2, unique=True), "forgets": _marks}),
    "read_dedupe": (2, {}),
    "release_dedupe": (1, {"key": st.sampled_from(KEYS)}),
}
