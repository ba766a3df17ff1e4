"""Commands about a whole queue: settings, events, and removal of many jobs."""

from __future__ import annotations

from ....errors import InvalidOption
from ....job.events import DOUBLE_MOVES, published_detail
from ....job.instants import Instant
from ....job.states import FINAL
from ....store.commands import Clean, Configure, Obliterate, Publish, TrimEvents
from ....store.staging import stages_after
from ....store.values import BATCH, Cleaned, Settings
from ..decoding import stages_of
from ..encoding import as_json, bounded, given
from ..executor import Executor
from ..finding import oldest
from ..ids import all_shortened, texts_of


async def configure(on: Executor, command: Configure, now: Instant | None) -> Settings:
    queue = command.queue
    to_pause, to_resume = (
        [(name, as_json(name).decode()) for name in names] for names in (command.pause_names, command.resume_names)
    )
    # Refuses what is no age, before anything is written.
    stages_after(None, command)
    await on.register([queue])
    stages = command.stale_after, command.delete_after, command.callbacks
    answer = await on.run(
        "configure", queue, given(now), command.pause, to_pause, to_resume, command.max_active, *stages
    )
    is_paused, names, limit, is_new, fields = answer
    await on.notice_new([queue] if is_new else [])
    paused_names = tuple(sorted(name.decode() for name in names))
    return Settings(bool(is_paused), paused_names, limit or None, stages_of(fields))


async def publish(on: Executor, command: Publish, now: Instant | None) -> None:
    # Whoever adds the first job finds a row, and would not note the queue again after somebody emptied the server.
    await on.register([command.queue])
    detail = published_detail(command.name, command.data, command.job)
    is_new = await on.run("publish", command.queue, given(now), detail)
    await on.notice_new([command.queue] if is_new else [])


async def trim_events(on: Executor, command: TrimEvents, _: Instant | None) -> None:
    await on.run("trim_events", command.queue, bounded(max(1, command.keep)), DOUBLE_MOVES)


async def clean(on: Executor, command: Clean, now: Instant | None) -> Cleaned:
    queue, state = command.queue, command.state
    if state == "active":
        raise InvalidOption("state", "cannot be 'active': cancel or remove running jobs instead")
    limit = max(0, min(command.limit, BATCH))
    ids: list[str] | bool = False
    more = False
    if state not in FINAL:
        clock = now if now is not None else await on.call("clock", (on.keys.queue(queue),))
        found = await oldest(on.run, queue, state, clock - command.older_than, limit + 1)
        ids, more = all_shortened(found[:limit]), len(found) > limit
    removed, others = await on.run("clean", queue, given(now), state, command.older_than, limit, ids)
    return Cleaned(texts_of(removed), more=more or bool(others))


async def obliterate(on: Executor, command: Obliterate, now: Instant | None) -> Cleaned:
    removed, more, active = await on.run("obliterate", command.queue, given(now), command.force)
    return Cleaned(texts_of(removed), more=bool(more), active=active)
