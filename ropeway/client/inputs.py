"""Parameters of a task that are filled with the results of the jobs before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from ..errors import InvalidInput
from ..job.codec import Json
from ..job.options import Taken
from ..job.record import NewJob
from ..showing import shown

if TYPE_CHECKING:
    from .tasks import Task

R = TypeVar("R")


class Input(msgspec.Struct, frozen=True):
    """The default of such a parameter: the name and queue of the task whose results it takes."""

    name: str
    queue: str
    many: bool

    def __repr__(self) -> str:
        return f"{'results_of' if self.many else 'result_of'}({self.name})"


def result_of(task: Task[..., R]) -> R:
    """As the default of a parameter: it is given the result of the job of this task that runs before.

    `async def resize(path: str = result_of(download)) -> str: ...`, added by
    `resize.call().after(download.call(url)).add()`. If that job gave no result, because its failure was ignored, the
    attempt fails.
    """
    return cast(R, _input(task, many=False))


def results_of(task: Task[..., R]) -> list[R]:
    """As the default of a parameter: it is given the results of all jobs of this task that ran before, in their order.

    Those that failed, and whose failure was ignored, are left out.
    """
    return cast(list[R], _input(task, many=True))


def _input(task: Any, *, many: bool) -> Input:
    name, queue = getattr(task, "name", None), getattr(task, "queue", None)
    if not isinstance(name, str) or queue is None or not hasattr(task, "signature"):
        word = "results_of" if many else "result_of"
        raise InvalidInput(f"{word} takes a task, and not {shown(task)}: make it one with @queue.task")
    return Input(name, queue.name, many)


def unfilled(inputs: Mapping[str, Input], data: Json) -> dict[str, Input]:
    """Those that the caller did not give a value for."""
    given = data if isinstance(data, dict) else {}
    return {parameter: wanted for parameter, wanted in inputs.items() if parameter not in given}


def taken_from(name: str, inputs: Mapping[str, Input], children: Sequence[NewJob]) -> dict[str, Taken]:
    """Which children fill which parameter of the job of this name."""
    taken: dict[str, Taken] = {}
    for parameter, wanted in inputs.items():
        found = [(job.queue, job.id) for job in children if (job.name, job.queue) == (wanted.name, wanted.queue)]
        if not found:
            raise InvalidInput(
                f"{name!r} takes the result of {wanted.name!r} as {parameter!r}, and no such job is before it: "
                f"use {name}.call(...).after({wanted.name}.call(...))"
            )
        if len(found) > 1 and not wanted.many:
            raise InvalidInput(
                f"{name!r} takes one result of {wanted.name!r} as {parameter!r}, and {len(found)} such jobs are "
                f"before it: let it take results_of({wanted.name})"
            )
        # The ids of ten thousand children would be as large as the children.
        takes_all = wanted.many and len(found) == len(children)
        taken[parameter] = Taken(True, None, len(found)) if takes_all else Taken(wanted.many, tuple(found))
    return taken


def refuse_unfilled(name: str, inputs: Mapping[str, Input]) -> None:
    for parameter, wanted in inputs.items():
        raise InvalidInput(
            f"{name!r} takes the result of {wanted.name!r} as {parameter!r}: add it after that one, as in "
            f"{name}.call(...).after({wanted.name}.call(...)).add(), or give the value"
        )
