"""Constants of the domain for Lua: the values of `{{NAME}}`, derived from `ropeway.job` and `ropeway.store`.

Words are inserted without quotes, as in `'{{ACTIVE}}'`; tables are Lua literals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from ...job.dedupe import ACTIONS, MODES, SUPERSEDED, DedupeAction, DedupeRule
from ...job.events import DOUBLE_MOVES, EVENTS_KEPT, NOTICES, PUBLISHED
from ...job.extras import Extras
from ...job.failure import EXPIRED_REASON
from ...job.flows import CHILD_NOT_ADDED, EFFECTS, ENDS, OWED, ChildEnd, ChildState, Effect, Policy, reason_for_parents
from ...job.instants import LAST_INSTANT, Milliseconds
from ...job.moves import MOVES
from ...job.outcomes import SettlingMove
from ...job.retention import Retention
from ...job.rules import METRICS_OF, MetricName
from ...job.stages import CALLBACK_BATCH, CALLBACK_OPTIONS, DEFAULT_KEEPS, ID_KEPT, STAGES, SYSTEM_PREFIX
from ...job.stalls import GIVEN_UP, StallVerdict, stall_reason
from ...job.states import FINAL, STATES, State
from ...job.webhooks import DELIVERIES, DELIVERY_OPTIONS
from ...store.answer_codes import ADDED, ANSWERS
from ...store.values import BATCH, DUE_SCHEDULES
from .encoding import DEFAULTS, pack

METRICS: Final[tuple[MetricName, ...]] = get_args(MetricName)
METRICS_KEPT: Final[Milliseconds] = 14 * 86_400_000
REVOKED_KEPT: Final[Milliseconds] = 60_000
VERDICT_CODES: Final = {answer.verdict: code[0] for code, answer in ANSWERS.items()}
STATE_CODES: Final[Mapping[State, str]] = {
    answer.state: code[1] for code, answer in ANSWERS.items() if answer.state is not None
}
ACCEPTED: Final = VERDICT_CODES["done"] + STATE_CODES["active"]
"""The answer to an outcome that changed its job: done, and the job was active. A repeat finds it in another state."""
MISSING: Final = next(code for code, answer in ANSWERS.items() if (answer.verdict, answer.state) == ("missing", None))
IN_LINE: Final[tuple[State, ...]] = "waiting", "delayed"
"""States that runs do not tell apart: a set says which jobs are delayed."""
CHILD_CODES: Final[Mapping[ChildState | ChildEnd, str]] = {
    "pending": "p",
    "completed": "c",
    "failed": "f",
    "cancelled": "x",
    "removed": "r",
}
_EXTRAS_OF_KEY: Final = pack(((), (), 0, Extras(dedupe=DedupeRule(""))))[:-1]
"""The extras of a job that has nothing rare but a dedupe key, up to that key."""
CHUNK_OF_KEYS: Final = 500
"""How many children of a parent are listed in one field."""
POLICY_CODES: Final[Mapping[Policy, str]] = {"fail": "f", "ignore": "i", "remove": "r", "continue": "c", "wait": "w"}


def name_of(word: str) -> str:
    """The placeholder of a word: WAITING_CHILDREN for "waiting-children"."""
    return word.upper().replace("-", "_").replace(" ", "_")


def literal(value: object) -> str:
    """A value as Lua writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
            return f"'{quoted}'"
        case Mapping():
            return f"{{ {', '.join(f'[{literal(key)}] = {literal(each)}' for key, each in value.items())} }}"
        case Iterable():
            return f"{{ {', '.join(map(literal, value))} }}"
    raise TypeError(f"Lua has no literal for {value!r}")


def _set(members: Iterable[str]) -> dict[str, bool]:
    return dict.fromkeys(members, True)


def _words() -> dict[str, str]:
    verdicts: tuple[str, ...] = get_args(StallVerdict)
    return {name_of(word): word for word in (*STATES, *MOVES, *NOTICES, PUBLISHED, *METRICS, *verdicts)}


def _codes() -> dict[str, str]:
    """Answer codes: one letter for a verdict, and two where the state belongs to it."""
    of_verdicts = {name_of(verdict): code for verdict, code in VERDICT_CODES.items()}
    # One of them is the name of an event too.
    added = {name_of(verdict) + "_CODE" * (verdict in NOTICES): code for code, verdict in ADDED.items()}
    return {**of_verdicts, "MISSING": MISSING, "ACCEPTED": ACCEPTED, **added}


def _reason_pieces() -> dict[str, Any]:
    """The fixed parts of the reason of a stall, between worker, end of its process, and instant."""
    process, worker, end, instant = "<process>", "<process>:<worker>", "<end>", "1970-01-01T00:00:00.000Z"
    heads = {verdict: stall_reason(verdict, worker, 0).partition(worker)[0] for verdict in get_args(StallVerdict)}
    plain = stall_reason("waits", worker, 0).partition(worker)[2]
    ended = stall_reason("waits", worker, 0, {process: end}).partition(worker)[2]
    before, _, after = ended.partition(end)
    return {
        "REASON_HEADS": literal(heads),
        "BEFORE_RENEWAL": plain.removesuffix(instant),
        "BEFORE_PROCESS_END": before,
        "AFTER_PROCESS_END": after.removesuffix(instant),
    }


def _flow_pieces() -> dict[str, Any]:
    """The table of flows by letters, and the fixed parts of the reason with which parents fail."""
    child, reason = "<queue>/<id>", "<reason>"
    head, _, failed = reason_for_parents("<queue>", "<id>", "fail", reason).partition(child)
    cancelled = reason_for_parents("<queue>", "<id>", "cancel", None).partition(child)[2]
    why = reason_for_parents("<queue>", "<id>", "cancel", reason).partition(cancelled)[2]
    effects: tuple[Effect, ...] = get_args(Effect)
    return {
        **{f"EFFECT_{name_of(effect)}": effect for effect in effects},
        **{f"POLICY_{name_of(policy)}": code for policy, code in POLICY_CODES.items()},
        **{f"CHILD_{name_of(state)}": code for state, code in CHILD_CODES.items()},
        "EFFECTS": literal(
            {
                CHILD_CODES[end] + POLICY_CODES[policy]: effect
                for end, row in EFFECTS.items()
                for policy, effect in row.items()
            }
        ),
        "OWED": literal({effect: rank for rank, effect in enumerate(OWED, 1)}),
        "ENDS": literal({move: CHILD_CODES[end] for move, end in ENDS.items()}),
        "REASON_CHILD": head,
        "REASON_FAILED": failed.removesuffix(reason),
        "REASON_CANCELLED": cancelled,
        "REASON_NOT_ADDED": f" {CHILD_NOT_ADDED}",
        "REASON_WHY": why.removesuffix(reason),
    }


def _dedupe_pieces() -> dict[str, Any]:
    actions: tuple[DedupeAction, ...] = get_args(DedupeAction)
    return {
        **{f"ACTION_{name_of(action)}": action for action in actions},
        **{f"MODE_{name_of(mode)}": mode for mode in MODES},
        "DEFAULT_MODE": DedupeRule("").mode,
        "ACTIONS": literal(ACTIONS),
        # Modes for which the state of the holder does not matter.
        "ALWAYS_FINDS": literal(_set(mode for mode in MODES if {*ACTIONS[mode].values()} == {"find"})),
        "SUPERSEDED": SUPERSEDED,
        "EXTRAS_OF_KEY": ", ".join(map(str, _EXTRAS_OF_KEY)),
    }


def _is_keep(keep: Retention) -> str:
    """Compares the age and count of a retention in Lua."""
    return f"(age == {keep.age} and {'not most' if keep.count is None else f'most == {keep.count}'})"


_settling: Final[tuple[SettlingMove, ...]] = get_args(SettlingMove)
_first, _second = ({move: kinds[n] for move, kinds in METRICS_OF.items() if len(kinds) > n} for n in (0, 1))

VALUES: Final[Mapping[str, object]] = {
    **_words(),
    **_codes(),
    **_reason_pieces(),
    **_flow_pieces(),
    **_dedupe_pieces(),
    "CHUNK_OF_KEYS": CHUNK_OF_KEYS,
    "DELIVERIES": DELIVERIES,
    "DELIVERY_OPTIONS": DELIVERY_OPTIONS,
    "DEFAULTS": literal(DEFAULTS),
    "LAST_INSTANT": LAST_INSTANT,
    "BATCH": BATCH,
    "DUE_SCHEDULES": DUE_SCHEDULES,
    "EXPIRED_REASON": EXPIRED_REASON,
    "EVENTS_KEPT": EVENTS_KEPT,
    "METRICS_KEPT": METRICS_KEPT,
    "REVOKED_KEPT": REVOKED_KEPT,
    "STAGES": literal(STAGES),
    "SYSTEM_PREFIX": SYSTEM_PREFIX,
    "CALLBACK_BATCH": CALLBACK_BATCH,
    "CALLBACK_OPTIONS": CALLBACK_OPTIONS,
    "ID_KEPT": ID_KEPT,
    "IS_DEFAULT_KEEP": " or ".join(map(_is_keep, DEFAULT_KEEPS)),
    "FINAL": literal(FINAL),
    "IS_FINAL": literal(_set(FINAL)),
    "IS_GIVEN_UP": literal(_set(GIVEN_UP)),
    "COUNTERS": f"{{ {', '.join(f'[{literal(state)}] = {name_of(state)}' for state in STATES)} }}",
    "STATE_CODES": literal(STATE_CODES),
    "RUN_STATES": literal({code: state for state, code in STATE_CODES.items() if state not in IN_LINE}),
    "REPEAT_TARGETS": literal({move: _set(MOVES[move].targets) for move in _settling}),
    "METRICS": literal(METRICS),
    "METRIC_OF": literal(_first),
    # Chains of comparisons: tables would be made in every call.
    "SECOND_METRIC_OF_WHAT": " or ".join(f"what == {literal(move)} and {literal(_second[move])}" for move in _second),
    "WHAT_IS_DOUBLE": " or ".join(f"what == {literal(move)}" for move in DOUBLE_MOVES),
}
