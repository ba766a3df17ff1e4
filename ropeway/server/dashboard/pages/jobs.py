"""Jobs: found by filters in the address, and acted upon one by one or all that match."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from ....client.queue import Queue
from ....errors import InvalidOption
from ....job.choices import one_of
from ....job.names import job_id, queue_name
from ....showing import plural
from ...problems import Refused
from ..filters import FIELDS, SCAN, Filter, filter_of, matching, search
from ..operations import MOST, STATES_OF, Action, Operation, act, states_for
from ..visits import Visit, named_queue, page

PER_PAGE: Final = 50
MOST_QUEUES: Final = 50
"""Queues that are searched, if none is named."""
COUNTED: Final = 2_000
"""Jobs that are looked at to count those that match."""
DONE: Final[dict[Action, str]] = {
    "retry": "retried",
    "cancel": "cancelled",
    "promote": "promoted",
    "remove": "removed",
}


def _given(values: dict[str, list[str]]) -> dict[str, str]:
    return {field: values.get(field, [""])[-1].strip() for field in FIELDS}


async def _wanted(visit: Visit, given: dict[str, str]) -> tuple[Filter, list[Queue], list[Queue]]:
    """The filter, the queues it is about, and all queues."""
    wanted = filter_of(visit, given, await visit.dashboard.summaries.now())
    known = await visit.queues()
    chosen = [visit.broker.queue(queue_name(wanted.queue))] if wanted.queue else known[:MOST_QUEUES]
    return wanted, chosen, known


async def list_jobs(visit: Visit) -> Response:
    given = _given(visit.args)
    wanted, chosen, known = await _wanted(visit, given)
    after = visit.arg("after")
    if after and (visit.principal.beyond([queue_name(after.partition("~")[0])]) is not None):
        raise Refused(404, "not-found", "there is no such page")
    found = await search(chosen, wanted, visit.dashboard.options.redact, after, PER_PAGE)
    kept = {field: value for field, value in given.items() if value}
    return visit.page(
        "jobs.html",
        section="Jobs",
        title="Jobs",
        live=f"{visit.root}/live?{urlencode({'queue': wanted.queue})}" if wanted.queue else f"{visit.root}/live",
        given=given,
        kept=kept,
        address=urlencode(kept),
        queues=[queue.name for queue in known],
        left_out=0 if wanted.queue else len(known) - len(chosen),
        found=found,
        after=after,
        is_cut=found.next is not None and len(found.jobs) < PER_PAGE,
        scan=SCAN,
        actions=[action for action in STATES_OF if states_for(action, wanted)],
    )


def _chosen(visit: Visit) -> list[str]:
    return visit.fields.get("job") or ["*"]


async def apply(visit: Visit) -> Response:
    """One action on the jobs that were chosen."""
    action: Action = one_of(*STATES_OF)("action", visit.field("action"))
    by_queue: dict[str, list[str]] = {}
    for each in visit.fields.get("job", []):
        queue, _, id = each.partition("/")
        by_queue.setdefault(queue_name(queue), []).append(job_id(id))
    visit.reach(by_queue)
    if not by_queue:
        raise InvalidOption("job", "is missing: choose at least one job")
    answers = [
        answer for queue, ids in by_queue.items() for answer in await act(visit.broker.queue(queue), action, ids)
    ]
    for queue in by_queue:
        visit.dashboard.summaries.forget(queue)
    moved = sum(answer.verdict == "done" for answer in answers)
    left = len(answers) - moved
    note = f"{plural(moved, 'job')} {DONE[action]}{f', {left:,} could not be' if left else ''}."
    return visit.back(f"/jobs?{urlencode(_filled(_given(visit.fields)))}", note)


async def confirm(visit: Visit) -> Response:
    """How many jobs match, before an action on all of them."""
    action: Action = one_of(*STATES_OF)("action", visit.arg("action"))
    given = _given(visit.args)
    wanted, chosen, _ = await _wanted(visit, given)
    counts: Counter[str] = Counter()
    looked_at, is_all = 0, True
    states = states_for(action, wanted)
    if wanted.is_plain and not (wanted.name or wanted.tag or wanted.id):
        for queue in chosen:
            counted: Any = await queue.counts()
            counts.update({state: counted[state] for state in states if counted[state]})
    else:
        async for _queue, jobs, seen in matching(
            chosen if states else [], wanted, visit.dashboard.options.redact, states
        ):
            counts.update(job.snapshot.state for job in jobs)
            looked_at += seen
            if looked_at >= COUNTED:
                is_all = False
                break
    return visit.page(
        "confirm.html",
        section="Jobs",
        title=f"{action.capitalize()} all that match",
        action=action,
        kept=_filled(given),
        address=urlencode(_filled(given)),
        counts=counts,
        is_all=is_all,
        counted=COUNTED,
        most=MOST,
    )


async def apply_all(visit: Visit) -> Response:
    """Starts one operation on all jobs that match."""
    action: Action = one_of(*STATES_OF)("action", visit.field("action"))
    wanted, chosen, _ = await _wanted(visit, _given(visit.fields))
    return await start_operation(visit, action, chosen, wanted)


async def start_operation(visit: Visit, action: Action, queues: list[Queue], wanted: Filter) -> Response:
    """Leads to its page."""
    operation = Operation(action, visit.principal.name)
    started = await visit.store.clock()
    work = operation.run(queues, wanted, visit.dashboard.options.redact, started)
    visit.dashboard.operations.start(operation, work)
    return visit.back(f"/operations/{operation.id}")


async def show_operation(visit: Visit) -> Response:
    operation = visit.dashboard.operations.get(visit.params["operation"])
    if operation is None or operation.who != visit.principal.name:
        raise Refused(404, "not-found", "this operation is not known here: it may have run before a restart")
    return visit.page(
        "operation.html",
        section="Jobs",
        title=f"{operation.action.capitalize()} all that match",
        operation=operation,
        done=DONE[operation.action],
        most=MOST,
    )


def _filled(given: dict[str, str]) -> dict[str, str]:
    return {field: value for field, value in given.items() if value}


ROUTES: Final = (
    page("GET", "/jobs", list_jobs, "Jobs that match a filter."),
    page("POST", "/jobs", apply, "Acts on the chosen jobs.", targets=_chosen),
    page("GET", "/jobs/all", confirm, "Asks before acting on all that match.", right=("operate",)),
    page("POST", "/jobs/all", apply_all, "Acts on all jobs that match.", targets=named_queue),
    page("GET", "/operations/{operation}", show_operation, "An operation on many jobs."),
)
