"""The steps of the state machine, with their weights and argument strategies."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from msgspec.structs import replace

from ..job.flows import POLICIES, Child, Parent
from ..job.record import NewJob
from ..job.retention import Keep, Retention
from ..job.states import STATES
from ..store.values import StallRules
from .extra_steps import EXTRA_STEPS, with_extras
from .factories import DAY, ELSEWHERE, MINUTE, QUEUE, SECOND, new_job

# Few different values, so that calls hit the same jobs again and again.
_ids = st.sampled_from(["a", "b", "c", "d", "e", "f"])
_some_ids = st.lists(_ids, min_size=1, max_size=3, unique=True)
# More of them, because a flow takes several at once.
_any_ids = _ids | st.sampled_from(["g", "h", "i", "j", "k", "l"])
_some_of_any = st.lists(_any_ids, min_size=1, max_size=3, unique=True)
_policies = st.sampled_from(POLICIES)
_queues = st.sampled_from([QUEUE, QUEUE, ELSEWHERE])
_names = st.sampled_from(["send", "send", "print"])
_data = st.sampled_from(["1", "1", "1", "1", "2"])
_delays = st.sampled_from([0, 0, 0, SECOND, MINUTE])
_locks = st.sampled_from([SECOND, MINUTE])
_held = st.sampled_from(["current", "current", "current", "stale", "foreign"])
_aims = st.sampled_from(["active", "active", "any"])
_seldom = st.sampled_from([False, False, False, False, True])
_options: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "attempts": st.integers(1, 3),
        "remove_on_fail": st.sampled_from([True, False, Keep(age=60)]),
        "stack_traces": st.integers(0, 2),
    },
)
_new_jobs = st.builds(
    lambda options, **given: new_job(**given, **options),
    _options,
    id=_ids,
    name=_names,
    data=_data,
    delay=_delays,
    priority=st.integers(-1, 1),
    lifo=st.booleans(),
)


@st.composite
def _flows(draw: st.DrawFn) -> list[NewJob]:
    """A bundle of 2 to 6 jobs, parents first; each but the first below one or two of those before it."""
    ids = draw(st.lists(_any_ids, min_size=2, max_size=6, unique=True))
    flow = [new_job(id, queue=draw(_queues), name=draw(_names), delay=draw(_delays), **draw(_options)) for id in ids]
    for number in range(1, len(flow)):
        for above in draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=2, unique=True)):
            parent, child = flow[above], flow[number]
            link = Child(child.queue, child.id, draw(_policies))
            flow[above] = replace(parent, children=(*parent.children, link))
            flow[number] = replace(child, parents=(*child.parents, Parent(parent.queue, parent.id)))
    return flow


_requests = st.fixed_dictionaries(
    {
        "limit": st.integers(1, 3),
        "lock": _locks,
        "names": st.sampled_from([None, None, None, None, ("send",), ("print", "other")]),
        "worker": st.sampled_from(["worker-1", "worker-2"]),
        "isolates": st.booleans(),
    }
)

_rules = st.builds(
    StallRules,
    max_stalled_count=st.integers(0, 2),
    on_stalled=st.sampled_from(["requeue", "requeue", "fail"]),
    counts_as_attempt=st.booleans(),
)

STEPS: Final[dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]]] = {
    "add": (7, {"bundles": st.lists(st.lists(_new_jobs, min_size=1, max_size=3), min_size=1, max_size=2)}),
    # Stores may have a separate implementation for it.
    "add_a_plain_job": (3, {"id": _ids, "name": _names}),
    "add_flows": (5, {"flows": st.lists(_flows(), min_size=1, max_size=2)}),
    # One at a time: its jobs are not found by another flow of the same call if they are discarded.
    "add_a_flow_with_extras": (3, {"flow": _flows().flatmap(with_extras)}),
    "add_children": (
        2,
        {
            "id": _any_ids,
            "aim": _aims,
            "held": _held,
            "ids": _some_of_any,
            "queue": _queues,
            "policy": _policies,
        },
    ),
    "work_elsewhere": (
        3,
        {
            "limit": st.integers(1, 3),
            "move": st.sampled_from(["complete", "complete", "fail", "retry", "hand back"]),
            "keep": st.sampled_from([Retention(age=DAY), Retention(count=0)]),
        },
    ),
    "change_elsewhere": (1, {"how": st.sampled_from(["cancel", "retry", "remove"]), "ids": _some_of_any}),
    "read_children": (1, {"id": _any_ids, "queue": _queues, "limit": st.integers(1, 3)}),
    "claim": (6, {"request": _requests}),
    "claim_again_after_a_lost_answer": (1, {}),
    "settle": (
        5,
        {
            "ids": st.lists(_ids, min_size=1, max_size=2, unique=True),
            "aim": _aims,
            "held": _held,
            "move": st.sampled_from(["complete", "retry", "fail", "postpone", "hand back"]),
            "delay": _delays,
            "keep": st.sampled_from(
                [Retention(age=DAY), Retention(age=DAY), Retention(), Retention(count=0), Retention(count=1)]
            ),
            "then": st.none() | _requests,
            "awaits_children": st.booleans(),
        },
    ),
    "settle_again_after_a_lost_answer": (3, {}),
    "renew": (3, {"ids": _some_ids, "aim": _aims, "held": _held, "lock": _locks}),
    "update": (
        1,
        {
            "id": _ids,
            "aim": _aims,
            "held": st.none() | _held,
            "progress": st.none() | _data,
            "data": st.none() | _data,
            "alone": st.sampled_from([None, None, True, False]),
            "clears": st.booleans(),
        },
    ),
    "write_log": (1, {"id": _ids, "lines": st.integers(1, 3), "keep": st.integers(0, 4)}),
    "clear_log": (1, {"id": _ids, "keep": st.integers(0, 2)}),
    "publish": (1, {"name": st.sampled_from(["imported", "exported"]), "job": st.none() | _ids}),
    "retain": (
        1,
        {
            "stale_after": st.sampled_from([None, 0, SECOND, MINUTE]),
            "delete_after": st.sampled_from([None, 0, MINUTE, DAY]),
            "callbacks": st.sampled_from([None, (), ("stale",), ("stale", "deleted")]),
        },
    ),
    "cancel": (1, {"ids": _some_of_any, "reason": st.sampled_from([None, "not needed"])}),
    "retry_by_hand": (1, {"ids": _some_of_any, "reset": st.booleans()}),
    "promote": (1, {"ids": _some_of_any}),
    "change": (
        2,
        {
            "id": _ids,
            "priority": st.none() | st.integers(-1, 1),
            "lifo": st.none() | st.booleans(),
            "delay": st.none() | _delays,
            "data": st.none() | _data,
        },
    ),
    "remove": (1, {"ids": _some_of_any, "force": _seldom}),
    "pause_or_resume": (1, {"pause": _seldom}),
    "pause_or_resume_a_name": (1, {"pause": _seldom, "name": _names}),
    "limit": (1, {"max_active": st.sampled_from([0, 0, 0, 1, 2])}),
    "clean": (
        2,
        {
            "state": st.sampled_from([state for state in STATES if state != "active"]),
            "older_than": st.sampled_from([0, SECOND, DAY]),
            "limit": st.integers(1, 3),
        },
    ),
    "tick": (3, {"rules": _rules}),
    # A job that stalls repeatedly is rare otherwise, and stores judge it by its history.
    "workers_die_again_and_again": (3, {"request": _requests, "rules": _rules, "times": st.integers(1, 3)}),
    "time_passes": (4, {"by": st.sampled_from([1, SECOND - 1, SECOND, SECOND, MINUTE, MINUTE, DAY])}),
    "a_handle_is_closed_and_another_opened": (1, {"which": st.integers(0, 1)}),
    **EXTRA_STEPS,
}
"""Names of the machine's methods, each with its weight and its arguments."""

WEIGHED_STEPS: Final = st.one_of(
    [
        st.tuples(st.just(name), st.fixed_dictionaries(given))
        for name, (often, given) in STEPS.items()
        for _ in range(often)
    ]
)
