"""Commands on single jobs by hand: cancel, retry, promote, change, remove, clear the log."""

from __future__ import annotations

from ....job.instants import Instant
from ....store.answer_codes import ANSWERS, answers_of
from ....store.commands import Cancel, Change, ClearLog, Promote, Remove, Retry
from ....store.values import Answer
from ..encoding import DEFAULTS
from ..executor import Executor
from ..marking import marks_text
from ..parameters import Parameter, amount, boolean, booleans, numbers, text, texts


async def cancel(on: Executor, command: Cancel, now: Instant | None) -> list[Answer]:
    return await _each(on, "cancel", command.queue, now, texts(command.ids), text(command.reason), DEFAULTS)


async def retry(on: Executor, command: Retry, now: Instant | None) -> list[Answer]:
    marks = text(marks_text(command.marking))
    return await _each(on, "retry", command.queue, now, texts(command.ids), boolean(command.reset), marks)


async def promote(on: Executor, command: Promote, now: Instant | None) -> list[Answer]:
    return await _each(on, "promote", command.queue, now, texts(command.ids))


async def change(on: Executor, command: Change, now: Instant | None) -> list[Answer]:
    changes = command.changes
    return await _each(
        on,
        "change",
        command.queue,
        now,
        texts([change.id for change in changes]),
        numbers([change.priority for change in changes]),
        booleans([change.lifo for change in changes]),
        numbers([change.delay for change in changes]),
        numbers([change.due_at for change in changes]),
        texts([change.data for change in changes]),
    )


async def remove(on: Executor, command: Remove, now: Instant | None) -> list[Answer]:
    return await _each(on, "remove", command.queue, now, texts(command.ids), boolean(command.force))


async def clear_log(on: Executor, command: ClearLog, _: Instant | None) -> Answer:
    [(letters,)] = await on.call("clear_log", text(command.queue), text(command.id), amount(command.keep))
    return ANSWERS[letters]


async def _each(on: Executor, function: str, queue: str, now: Instant | None, *parameters: Parameter) -> list[Answer]:
    [letters] = await on.call_and_notify(function, [queue], now, text(queue), *parameters)
    return answers_of(letters)
