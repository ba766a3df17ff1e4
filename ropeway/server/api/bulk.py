"""Managing many jobs: by ids, or by a filter in portions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

import msgspec

from ...client.moving import NOT_ACTIVE
from ...client.new_jobs import reason_text
from ...errors import InvalidOption
from ...job.names import job_id, job_name, tag_name
from ...job.states import FINAL, OPEN, State, state_named
from ...store.commands import Find
from ...store.values import BATCH, Answer
from ..routes import Call, Route
from ..work_types import ItemAnswer
from .jobs import clamped

_Ids = Annotated[tuple[str, ...], msgspec.Meta(max_length=BATCH)]


class Selection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs: those of the ids, or one portion of those that the filter finds."""

    ids: _Ids | None = None
    states: tuple[str, ...] = ()
    type: str | None = None
    tag: str | None = None
    limit: int = BATCH
    """Up to 1,000 jobs are looked at."""
    after: str | None = None
    """The `next` of the answer before."""


class CancelSelection(Selection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str | None = None


class RetrySelection(Selection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reset: bool = False


class RemoveSelection(Selection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    force: bool = False


class Moved(msgspec.Struct, frozen=True):
    done: int
    jobs: list[ItemAnswer]
    next: str | None = None
    """The `after` of the next portion; null after the last."""


class Redrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ids: _Ids = ()
    """Of dead letters; all that nobody has dealt with if none is given."""
    limit: int = BATCH


class Redriven(msgspec.Struct, frozen=True):
    sent: int


Act = Callable[[Call, list[str]], Awaitable[list[Answer]]]


async def _cancel(call: Call, ids: list[str]) -> list[Answer]:
    return await call.store.cancel(call.queue.name, ids, reason_text(call.body.reason))


async def _retry(call: Call, ids: list[str]) -> list[Answer]:
    return await call.store.retry(call.queue.name, ids, reset=call.body.reset)


async def _promote(call: Call, ids: list[str]) -> list[Answer]:
    return await call.store.promote(call.queue.name, ids)


async def _remove(call: Call, ids: list[str]) -> list[Answer]:
    return await call.store.remove(call.queue.name, ids, force=call.body.force)


def _moving(act: Act, movable: tuple[State, ...], default: tuple[State, ...]) -> Callable[[Call], Awaitable[Moved]]:
    async def run(call: Call) -> Moved:
        ids, following = await _chosen(call, call.body, movable, default)
        answers = await act(call, ids) if ids else []
        jobs = [ItemAnswer(id, answer.verdict, answer.state) for id, answer in zip(ids, answers, strict=True)]
        return Moved(sum(job.verdict == "done" for job in jobs), jobs, following)

    return run


async def _chosen(
    call: Call, asked: Selection, movable: tuple[State, ...], default: tuple[State, ...]
) -> tuple[list[str], str | None]:
    filtered = asked.states or asked.type is not None or asked.tag is not None
    if asked.ids is not None:
        if filtered:
            raise InvalidOption("ids", "and a filter were both given: give one of them")
        return [*dict.fromkeys(map(job_id, asked.ids))], None
    named: list[State] = [state_named(state) for state in asked.states]
    states = tuple(named) or default
    if not states:
        raise InvalidOption("states", f"are missing: name some of {', '.join(movable)}")
    if wrong := [state for state in states if state not in movable]:
        raise InvalidOption("states", f"cannot be {wrong[0]!r}: this is for {', '.join(movable)}")
    name = None if asked.type is None else job_name(asked.type)
    tag = None if asked.tag is None else tag_name(asked.tag)
    query = Find(call.queue.name, states, name, clamped(asked.limit), asked.after, tag=tag)
    page = await call.store.find(query)
    return [record.id for record in page.jobs], page.next


async def redrive(call: Call) -> Redriven:
    asked: Redrive = call.body
    return Redriven(await call.queue.redrive(*asked.ids, limit=clamped(asked.limit)))


_VERBS: Final[tuple[tuple[str, Act, tuple[State, ...], tuple[State, ...], Any, str], ...]] = (
    ("cancel", _cancel, OPEN, OPEN, CancelSelection, "Cancels jobs, by ids or by a filter in portions."),
    ("retry", _retry, FINAL, ("failed",), RetrySelection, "Runs finished jobs once more, by ids or a filter."),
    ("promote", _promote, ("delayed",), ("delayed",), Selection, "Makes delayed jobs wait now, by ids or a filter."),
    ("remove", _remove, NOT_ACTIVE, (), RemoveSelection, "Removes jobs, by ids or a filter."),
)

ROUTES: Final = (
    *(
        Route(
            "POST",
            f"/v1/queues/{{queue}}/{verb}",
            _moving(act, movable, default),
            ("operate",),
            summary,
            body=body,
            answer=Moved,
            audited=True,
            tag="jobs",
        )
        for verb, act, movable, default, body, summary in _VERBS
    ),
    Route(
        "POST",
        "/v1/queues/{queue}/redrive",
        redrive,
        ("operate",),
        "Sends dead letters back to the queues they came from.",
        body=Redrive,
        answer=Redriven,
        audited=True,
        tag="jobs",
    ),
)
