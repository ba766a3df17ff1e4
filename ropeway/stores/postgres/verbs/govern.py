"""Commands on a whole queue: settings, events, clean, obliterate."""

from __future__ import annotations

from typing import Final

from ....errors import InvalidOption
from ....job.events import DOUBLE_MOVES, EVENTS_KEPT, published_detail
from ....job.instants import Instant
from ....store.commands import Clean, Configure, Obliterate, Publish, TrimEvents
from ....store.staging import stages_after
from ....store.values import BATCH, Cleaned, Settings
from .. import reading
from ..executor import Executor
from ..parameters import amount, boolean, number, text, texts

TRIM_ONCE_IN: Final = 256
"""One publish in so many trims the events, chosen at random: most processes that publish make few calls."""


async def configure(on: Executor, command: Configure, now: Instant | None) -> Settings:
    # Refuses what is no age, before anything is written.
    stages_after(None, command)
    is_paused, names, limit, *stages = await on.call_and_notify(
        "configure",
        [command.queue],
        now,
        text(command.queue),
        boolean(command.pause),
        texts(command.pause_names),
        texts(command.resume_names),
        number(command.max_active),
        number(command.stale_after),
        number(command.delete_after),
        texts(command.callbacks),
    )
    return Settings(is_paused, tuple(names), limit, reading.stages_of(stages))


async def publish(on: Executor, command: Publish, now: Instant | None) -> None:
    queue, detail = command.queue, text(published_detail(command.name, command.data, command.job))
    await on.call_and_notify("publish", [queue], now, text(queue), detail, number(EVENTS_KEPT), number(TRIM_ONCE_IN))


async def trim_events(on: Executor, command: TrimEvents, _: Instant | None) -> None:
    await on.call("trim_events", text(command.queue), amount(max(1, command.keep)), texts(DOUBLE_MOVES))


async def clean(on: Executor, command: Clean, now: Instant | None) -> Cleaned:
    if command.state == "active":
        raise InvalidOption("state", "cannot be 'active': cancel or remove running jobs instead")
    queue, most = command.queue, number(max(0, min(command.limit, BATCH)))
    parameters = text(queue), text(command.state), number(command.older_than), most
    ids, more = await on.call_and_notify("clean", [queue], now, *parameters)
    return Cleaned(ids, more=more)


async def obliterate(on: Executor, command: Obliterate, now: Instant | None) -> Cleaned:
    [(ids, more, active)] = await on.call("obliterate", text(command.queue), boolean(command.force), number(now))
    return Cleaned(ids, more=more, active=active)
