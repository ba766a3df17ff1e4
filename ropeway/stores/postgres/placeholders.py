"""Values of the placeholders `{{NAME}}` in `sql`: constants of the domain, and lists of columns that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, get_args

from ...job.dead_letters import dead_letter_id
from ...job.dedupe import ACTIONS, SUPERSEDED, DedupeAction
from ...job.events import NOTICES, PUBLISHED
from ...job.failure import EXPIRED_REASON
from ...job.flows import CHILD_STATES, EFFECTS, OWED, Effect, reason_for_parents
from ...job.instants import LAST_INSTANT, Milliseconds
from ...job.moves import MOVES
from ...job.options import StoredOptions
from ...job.record import JobRecord
from ...job.retention import KEEP_FAILED
from ...job.stages import (
    CALLBACK_BATCH,
    CALLBACK_OPTIONS,
    DEFAULT_KEEPS,
    ID_KEPT,
    STAGES,
    SYSTEM_PREFIX,
    callback_id,
)
from ...job.stalls import stall_reason
from ...job.states import FINAL, STATES
from ...job.webhooks import DELIVERIES, DELIVERY_OPTIONS, delivery_id
from ...store.values import BATCH, DUE_SCHEDULES

MINUTE: Final[Milliseconds] = 60_000
METRICS_KEPT: Final[Milliseconds] = 14 * 24 * 60 * MINUTE
REVOKED_KEPT: Final[Milliseconds] = MINUTE
FUNCTIONS_KEPT: Final[Milliseconds] = 30 * 24 * 60 * MINUTE
"""How long an unused set of functions is kept."""
FOLD_BATCH: Final = 5_000
"""The most steps that one fold processes."""
CLOCK_SLACK: Final[Milliseconds] = 1_000
"""How far a renewal may lie ahead before the server's clock counts as set back: calls under way may be that old."""

MARKS_IN_ROW: Final = 1_000
"""Bytes of marks in the row of a job's state: with more, the server would store the row in several places."""

BRIEFLY: Final[Milliseconds] = 200
"""How long a call waits for what it locks in another order than others; the server notices deadlocks after a second."""

LOOK_AGAIN: Final[Milliseconds] = 100
"""After how long workers look again for a due job that another transaction has locked."""

CARRIED: Final = (
    "attempts_made", "attempts_started", "stalled_count", "logged", "id", "name", "started_at", "renewed_at", "token",
    "worker", "progress", "has_ties", "marks",
)  # fmt: skip
"""Columns that a move copies from one of the tables of states to another. The reason, too, unless the job completes."""
CARRIERS: Final = ("a", "gone", "held", "job")
"""Aliases, in statements, of the rows that these columns are copied from."""

PLANNING: Final = {
    # The functions are called with few jobs and with many: a plan of each call's own would cost more than it runs.
    "PLANNED_ONCE": ("plan_cache_mode = force_generic_plan", "jit = off"),
    # A plan is kept. One that was made while a table was small must not read or join the whole of it later.
    "BY_INDEX": ("enable_seqscan = off",),
    "IN_ORDER": ("enable_bitmapscan = off",),
    "BY_KEY": ("enable_hashjoin = off", "enable_mergejoin = off"),
}
"""Settings of functions, for the time that they run: those of the caller's session may be any."""

_RECORD_TYPES: Final = {
    **dict.fromkeys(("priority", "attempts_made", "attempts_started", "stalled_count", "children"), "integer"),
    **dict.fromkeys(
        ("ord", "created_at", "due_at", "started_at", "renewed_at", "lock_until", "finished_at", "expires_at"), "bigint"
    ),
    "tags": "text[]",
}
"""SQL types of the columns that are not text."""


def values() -> Mapping[str, object]:
    """The value of each placeholder, by name."""
    return {
        "BATCH": BATCH,
        "BRIEFLY": BRIEFLY,
        "LOOK_AGAIN": LOOK_AGAIN,
        "CLOCK_SLACK": CLOCK_SLACK,
        "DUE_SCHEDULES": DUE_SCHEDULES,
        "EXPIRED_REASON": EXPIRED_REASON,
        "FOLD_BATCH": FOLD_BATCH,
        "FUNCTIONS_KEPT": FUNCTIONS_KEPT,
        "MARKS_IN_ROW": MARKS_IN_ROW,
        "LAST_INSTANT": LAST_INSTANT,
        "METRICS_KEPT": METRICS_KEPT,
        "MINUTE": MINUTE,
        "REVOKED_KEPT": REVOKED_KEPT,
        "FINAL": _quoted(FINAL),
        "STATES": _quoted(STATES),
        **_moves(),
        **{_name(notice): notice for notice in (*NOTICES, PUBLISHED)},
        **_stall_reasons(),
        **_flows(),
        **_dedupe(),
        **_follow_ups(),
        **_carried(),
        **_record(),
        **{name: " ".join(f"SET {setting}" for setting in settings) for name, settings in PLANNING.items()},
    }


def _moves() -> dict[str, object]:
    found: dict[str, object] = {}
    for move in MOVES.values():
        name = _name(move.name)
        found[name] = move.name
        found[f"EVENTS_OF_{name}"] = len(move.announces) + bool(move.targets)
        found[f"TARGETS_OF_{name}"] = _quoted(move.targets)
    return found


def _stall_reasons() -> dict[str, str]:
    """Formats of the reason of a stall: how it ends the job, the worker, its last renewal, how its process ended."""
    how, _, _ = stall_reason("waits", "", 0).partition(":")
    when = stall_reason("waits", "", 0).rpartition(" ")[2]

    def formatted(ends: Mapping[str, str]) -> str:
        reason = stall_reason("waits", "process:worker", 0, ends)
        return (
            reason.replace(how, "%1$s", 1)
            .replace("process:worker", "%2$s")
            .replace(when, "%3$s")
            .replace("its end", "%4$s")
        )

    return {
        "STALLED": how,
        "STALL_REASON": formatted({}),
        "STALL_REASON_WITH_END": formatted({"process": "its end"}),
    }


def _flows() -> dict[str, str]:
    """The table of effects as branches of a CASE, its words, and formats of reasons: the queue, the id, the reason."""
    table = [
        f"WHEN '{ended} {policy}' THEN '{effect}'" for ended, row in EFFECTS.items() for policy, effect in row.items()
    ]
    options = StoredOptions()
    defaults = (options.attempts, options.stack_traces, KEEP_FAILED.age, KEEP_FAILED.count)
    return {
        "EFFECTS": " ".join(table),
        "OWED": _quoted(OWED),
        **{f"EFFECT_{_name(effect)}": effect for effect in get_args(Effect)},
        **{f"CHILD_{_name(word)}": word for word in (*CHILD_STATES, *EFFECTS)},
        "REASON_OF_FAILED_CHILD": reason_for_parents("%1$s", "%2$s", "fail", "%3$s"),
        "REASON_OF_CANCELLED_CHILD": reason_for_parents("%1$s", "%2$s", "cancel", None),
        "REASON_OF_CANCELLED_CHILD_WITH_REASON": reason_for_parents("%1$s", "%2$s", "cancel", "%3$s"),
        "OPTION_DEFAULTS": f"ARRAY[{', '.join('NULL' if each is None else str(each) for each in defaults)}]::bigint[]",
    }


def _dedupe() -> dict[str, str]:
    """The table of actions as branches of a CASE, and its words."""
    table = [f"WHEN '{mode} {state}' THEN '{action}'" for mode, row in ACTIONS.items() for state, action in row.items()]
    return {
        "DEDUPE_ACTIONS": " ".join(table),
        "FINDING_MODES": _quoted(mode for mode, row in ACTIONS.items() if set(row.values()) == {"find"}),
        "LOCKING_MODES": _quoted(mode for mode, row in ACTIONS.items() if set(row.values()) != {"find"}),
        **{f"MODE_{_name(mode)}": mode for mode in ACTIONS},
        **{f"ACTION_{_name(action)}": action for action in get_args(DedupeAction)},
        "SUPERSEDED": SUPERSEDED,
    }


def _follow_ups() -> dict[str, str]:
    """Formats of the ids of follow-ups, and the options of those that have their own."""
    return {
        "DEAD_LETTER_ID": dead_letter_id("%1$s", "%2$s", 0).removesuffix("0") + "%3$s",
        "DELIVERY_ID": delivery_id("%1$s", "%2$s", 0, "%4$s").replace(":0:", ":%3$s:"),
        "DELIVERIES": _in_two(DELIVERIES),
        "DELIVERY_OPTIONS": DELIVERY_OPTIONS,
        "STAGES": _quoted(STAGES),
        "CALLBACK_ID": callback_id("%1$s", 0, "%3$s").replace(":0:", ":%2$s:"),
        "SYSTEM_PREFIX": _in_two(SYSTEM_PREFIX),
        "CALLBACK_BATCH": str(CALLBACK_BATCH),
        "CALLBACK_OPTIONS": CALLBACK_OPTIONS,
        "ID_KEPT": str(ID_KEPT),
        "IS_DEFAULT_KEEP": " OR ".join(
            f"age = {keep.age} AND count {'IS NULL' if keep.count is None else f'= {keep.count}'}"
            for keep in DEFAULT_KEEPS
        ),
    }


def _carried() -> dict[str, str]:
    """The columns as a list, qualified by each alias, and as assignments from `job` to `r`."""
    of_rows = {f"CARRIED_OF_{row.upper()}": _columns(row, CARRIED) for row in CARRIERS}
    assigned = "\n    ".join(f"r.{column} := job.{column};" for column in CARRIED)
    return {"CARRIED": ", ".join(CARRIED), **of_rows, "CARRY_FROM_JOB_TO_R": assigned}


def _record() -> dict[str, str]:
    """The fields of a record as typed columns of an answer, and as columns of `whole_job` under the alias p.

    The latter without the last one, the marks, of which some are elsewhere.
    """
    columns = ["ord" if field == "order" else field for field in JobRecord.__struct_fields__]
    typed = ", ".join(f"{column} {_RECORD_TYPES.get(column, 'text')}" for column in columns)
    # The queue's name is not in its row, and the state is an enum.
    of_whole_job = _columns("p", [column for column in columns if column not in ("queue", "marks")]).replace(
        "p.state", "p.state::text"
    )
    return {"RECORD": typed, "RECORD_OF_WHOLE_JOB": f"queue_name, {of_whole_job}"}


def _in_two(queue: str) -> str:
    """The name of a queue, in two pieces: a text that begins with `ropeway.` would be taken for the schema."""
    return f"concat({_quoted((queue[:1], queue[1:]))})"


def _columns(row: str, columns: Iterable[str]) -> str:
    return ", ".join(f"{row}.{column}" for column in columns)


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _name(words: str) -> str:
    return words.upper().replace(" ", "_").replace("-", "_")
