"""Applying one operation to many jobs, with a confirmation if they were chosen by a filter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

import click

from ...errors import InvalidMove, JobNotFound
from ...job.states import State, state_named
from ...showing import plural
from ...store.contract import Store
from ...store.values import BATCH, MISSING, Answer
from ..completing import complete_name
from ..confirming import confirm
from ..exit_codes import ExitCode
from ..options import json_option, queue_option, state_option, url_option, yes_option
from ..text import as_json as json_text
from .choosing import Chosen, choose
from .locating import locate


class Verb(NamedTuple):
    name: str
    done: str
    movable: tuple[State, ...]
    """The states it applies to."""
    filtered: tuple[State, ...]
    """The states of a filter that names none; empty if it must name one."""


class Selection(NamedTuple):
    ids: tuple[str, ...]
    queue: str | None
    state: tuple[State, ...]
    name: str | None
    limit: int | None


class Moved(NamedTuple):
    queue: str
    id: str
    answer: Answer
    hint: str = ""
    why: str = ""
    """Why it was refused, if that is not about the job itself."""


Act: TypeAlias = Callable[[str, list[str]], Awaitable[Sequence[Answer | InvalidMove]]]
"""Moves jobs of a queue. In place of an answer there may be the error about another job of its flow."""


def chosen_by(states: str) -> Callable[[Callable[..., int]], Any]:
    """Adds filter options to a command, which receives them as `selection`; `states` describes the default states."""
    options = [
        click.argument("ids", nargs=-1, metavar="[ID]..."),
        queue_option,
        state_option(f"Choose jobs of this state; {states}.", multiple=True),
        click.option("--name", metavar="NAME", shell_complete=complete_name, help="Choose jobs of this name."),
        click.option("--limit", type=click.IntRange(1), help="The most jobs to choose."),
        yes_option,
        url_option,
        json_option,
    ]

    def decorate(command: Callable[..., int]) -> Any:
        @wraps(command)
        def packed(**given: Any) -> int:
            selection = Selection(**{field: given.pop(field) for field in Selection._fields})
            return command(selection=selection, **given)

        decorated: Any = packed
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


async def move(
    store: Store,
    verb: Verb,
    act: Act,
    selection: Selection,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    if selection.ids:
        moved = await _move_by_id(store, act, selection)
        return _report_each(verb, moved, as_json=as_json)
    states = _states(verb, selection)
    chosen = await choose(store, selection.queue, states, selection.name, selection.limit)
    if chosen:
        confirm(_question(verb, chosen, states, selection.name), yes=yes)
    return _report_all(verb, await _move(act, chosen), as_json=as_json)


async def _move_by_id(store: Store, act: Act, selection: Selection) -> list[Moved]:
    if selection.state or selection.name or selection.limit:
        raise click.UsageError("give ids, or --state, --name and --limit to choose jobs; not both")
    located = await locate(store, selection.ids, selection.queue)
    missing = (Moved(selection.queue or "", each, MISSING, located.hint(each)) for each in located.missing)
    return [*await _move(act, located.chosen), *missing]


async def _move(act: Act, chosen: Sequence[Chosen]) -> list[Moved]:
    moved: list[Moved] = []
    for queue, ids in chosen:
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            answers = await act(queue.name, batch)
            moved += [_moved(queue.name, each, answer) for each, answer in zip(batch, answers, strict=True)]
    return moved


def _moved(queue: str, id: str, answer: Answer | InvalidMove) -> Moved:
    if isinstance(answer, InvalidMove):
        return Moved(queue, id, Answer("refused", state_named(answer.state)), why=f"{id} was left as it is: {answer}")
    return Moved(queue, id, answer)


def _states(verb: Verb, selection: Selection) -> tuple[State, ...]:
    given = selection.state
    if not any(selection):
        raise click.UsageError("give the ids of jobs, or choose them with --queue, --state or --name")
    if not given and not verb.filtered:
        raise click.UsageError(f"say with --state which jobs to {verb.name}")
    if wrong := set(given) - set(verb.movable):
        allowed = ", ".join(verb.movable)
        raise click.UsageError(f"{verb.name} is for jobs that are {allowed}; not for {', '.join(sorted(wrong))} ones")
    return given or verb.filtered


def _question(verb: Verb, chosen: Sequence[Chosen], states: Sequence[State], name: str | None) -> str:
    number = sum(len(each.ids) for each in chosen)
    kind = f"{' or '.join(states)} job"
    named = f" named {name!r}" if name else ""
    where = chosen[0].queue.name if len(chosen) == 1 else f"{len(chosen)} queues"
    return f"{verb.name.capitalize()} {plural(number, kind)}{named} of {where}"


def _report_all(verb: Verb, moved: list[Moved], *, as_json: bool) -> int:
    """Reports the result. Refused jobs had changed their state between the count and the call."""
    if as_json:
        click.echo(json_text(_document(moved)))
    else:
        click.echo(f"{plural(_number(moved, 'done'), 'job')} {verb.done}")
    return ExitCode.OK


def _report_each(verb: Verb, moved: list[Moved], *, as_json: bool) -> int:
    if as_json:
        click.echo(json_text(_document(moved)))
    for each in moved:
        if each.answer.verdict != "done":
            click.echo(f"Error: {_why(verb, each)}", err=True)
        elif not as_json:
            click.echo(f"{each.id} {verb.done}")
    if _number(moved, "missing"):
        return ExitCode.NOT_FOUND
    return ExitCode.FAILED if _number(moved, "refused") else ExitCode.OK


def _document(moved: list[Moved]) -> dict[str, Any]:
    return {
        **{verdict: _number(moved, verdict) for verdict in ("done", "refused", "missing")},
        "jobs": [
            {"id": each.id, "queue": each.queue or None, "verdict": each.answer.verdict, "state": each.answer.state}
            for each in moved
        ],
    }


def _number(moved: list[Moved], verdict: str) -> int:
    return sum(each.answer.verdict == verdict for each in moved)


def _why(verb: Verb, moved: Moved) -> str:
    if moved.why:
        return moved.why
    if moved.answer.state is None:
        why = str(JobNotFound(moved.queue, moved.id)) if moved.queue else f"no queue has a job {moved.id!r}"
        return f"{why}{moved.hint}"
    return str(InvalidMove(moved.queue, moved.id, verb.name, moved.answer.state, verb.movable))
