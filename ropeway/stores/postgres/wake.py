"""Wakes: functions send them by NOTIFY, and one connection of each handle and loop hears them for all its listeners.

A NOTIFY takes a lock of the whole server at commit, so it is sent only to whom it helps. Who listens says so with a
shared advisory lock, which costs writers a look and no row, and which the server takes back when the connection ends.
Listeners to `jobs` say it while they wait, and for a short time after: a busy worker looks by itself.

A wake that was sent while nobody heard, because a listener was on its way or the connection had broken, is made good
for: whoever listens is woken as soon as the server knows of it again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from psycopg import Error

from ...errors import StoreError
from ...store.listening import EarListener
from ...store.values import Topic
from .connection import FIRST_PAUSE, open_link
from .link import Link, Row, Statement
from .parameters import number, text
from .statements import in_schema
from .target import Target

LONGEST_PAUSE: Final = 2.0
WATCH: Final = 5.0
"""Seconds of silence after which the server is asked whether it is still there."""
LINGER: Final = 1.0
"""Seconds after its last wait for which a listener to `jobs` is still told of them."""
LOOKS_AGAIN: Final = (0.05, 0.5)
"""Seconds after which a call that looked for listeners before we were one has committed; mostly, and under load."""
POLL: Final = 0.5
"""Seconds between two looks where nothing can be heard."""

Place: TypeAlias = tuple[Topic, str]
"""A topic and a queue."""


class Flag:
    """What the server knows of the listeners to one place."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.listeners: set[PostgresListener] = set()
        self.queue_id: int | None = None
        """Set while the lock is held."""
        self.raising: asyncio.Task[None] | None = None
        self.waits = 0
        self.lowering: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        for listener in [*self.listeners]:
            listener.wake()


class Ear:
    """Keeps a connection that listens, and the locks that say so."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._flags: dict[Place, Flag] = {}
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.polls = not target.listens
        listen, unlisten, has_work = (
            "SELECT ropeway.listen($1, $2)",
            "SELECT ropeway.unlisten($1, $2)",
            "SELECT ropeway.has_work($1)",
        )
        self._listen, self._unlisten, self._has_work = (
            Statement(in_schema(sql, target.schema)) for sql in (listen, unlisten, has_work)
        )

    def add(self, listener: PostgresListener) -> None:
        for place in listener.places:
            flag = self._flags.setdefault(place, Flag(place))
            flag.listeners.add(listener)
            if place[0] != "jobs":
                self._raise(flag)
        if not self.polls and (self._task is None or self._task.done()):
            self._task = self._loop.create_task(self._run(), name="ropeway-postgres-ear")

    def remove(self, listener: PostgresListener) -> None:
        for place in listener.places:
            flag = self._flags.get(place)
            if flag is not None:
                flag.listeners.discard(listener)
                if not flag.listeners:
                    del self._flags[place]
                    self._lower(flag)

    def begin(self, listener: PostgresListener) -> None:
        """Somebody waits: from now on the server knows."""
        for place in listener.places:
            flag = self._flags[place]
            flag.waits += 1
            if flag.lowering is not None:
                flag.lowering.cancel()
                flag.lowering = None
            self._raise(flag)

    def end(self, listener: PostgresListener) -> None:
        for place in listener.places:
            flag = self._flags.get(place)
            if flag is not None:
                flag.waits -= 1
                if not flag.waits and place[0] == "jobs":
                    flag.lowering = self._loop.call_later(LINGER, self._lower, flag)

    def _raise(self, flag: Flag) -> None:
        if self._link is not None and flag.queue_id is None and (flag.raising is None or flag.raising.done()):
            flag.raising = self._loop.create_task(self._raised(flag, self._link))

    async def _raised(self, flag: Flag, link: Link) -> None:
        topic, queue = flag.place
        with suppress(Error):
            [(queue_id,)] = await link.ask(self._listen, (text(queue), text(topic)))
            if self._link is not link:
                return
            flag.queue_id = queue_id
            if self._flags.get(flag.place) is not flag:
                self._lower(flag)
                return
            # Whatever happened before was not heard.
            flag.wake()
            for pause in LOOKS_AGAIN:
                self._loop.call_later(pause, self._look_again, flag, link)

    def _look_again(self, flag: Flag, link: Link) -> None:
        if self._link is not link or flag.queue_id is None:
            return
        if flag.place[0] != "jobs":
            flag.wake()
            return
        asked = link.ask(self._has_work, (number(flag.queue_id),))
        asked.add_done_callback(lambda done: flag.wake() if _is_so(done) else None)

    def _lower(self, flag: Flag) -> None:
        flag.lowering = None
        queue_id, flag.queue_id = flag.queue_id, None
        if queue_id is not None and self._link is not None and self._link.is_up:
            lowered = self._link.ask(self._unlisten, (number(queue_id), text(flag.place[0])))
            lowered.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def close(self) -> None:
        for listener in {listener for flag in self._flags.values() for listener in flag.listeners}:
            listener.close()
        raising = [flag.raising for flag in self._flags.values() if flag.raising is not None]
        tasks = [task for task in (self._task, *raising) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self) -> None:
        pause, failures = FIRST_PAUSE, 0
        while True:
            try:
                link = await open_link(self._target, failures)
            except StoreError:
                # Whoever waits has a safety poll, which tells what is wrong.
                failures += 1
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            pause, failures = FIRST_PAUSE, 0
            try:
                if not link.prepares:
                    # A pooler hands the session to others: nothing would be heard.
                    self.polls = True
                    self._wake_all()
                    return
                link.hear(self._hear)
                await link.run(f'LISTEN "{self._target.schema}.wake"')
                self._link = link
                for flag in self._flags.values():
                    if flag.waits or flag.place[0] != "jobs":
                        self._raise(flag)
                await self._watch(link)
            except Error:
                pass
            finally:
                self._link = None
                for flag in self._flags.values():
                    flag.queue_id = None
                    if flag.raising is not None:
                        # It would keep the next link from raising the flag.
                        flag.raising.cancel()
                        flag.raising = None
                link.abort()

    async def _watch(self, link: Link) -> None:
        """Returns when the link has ended; one whose server went silent ends by the question."""
        while not link.ended.is_set():
            try:
                async with asyncio.timeout(WATCH):
                    await link.ended.wait()
            except TimeoutError:
                if self._loop.time() - link.heard_at >= WATCH:
                    await link.run("SELECT 1")

    def _wake_all(self) -> None:
        for flag in self._flags.values():
            flag.wake()

    def _hear(self, said: str) -> None:
        for flag in [*self._flags.values()]:
            if flag.queue_id is not None and said == f"{flag.place[0]}:{flag.queue_id}":
                flag.wake()


def _is_so(answered: asyncio.Future[list[Row]]) -> bool:
    return not answered.cancelled() and answered.exception() is None and bool(answered.result()[0][0])


class PostgresListener(EarListener[Ear]):
    """Its `hold` only waits: a claim is one trip, and no job is ever given to a worker that does not hear of it."""

    def __init__(
        self, ear: Callable[[], Ear], topic: Topic, queues: Sequence[str], usable: Callable[[], None], url: str
    ) -> None:
        self.places: Final[list[Place]] = [(topic, queue) for queue in dict.fromkeys(queues)]
        super().__init__(ear, usable, url)

    async def wait(self, timeout: float | None = None) -> bool:
        ear = self._listening()
        ear.begin(self)
        try:
            if not ear.polls:
                return await super().wait(timeout)
            looks_again = timeout is None or timeout > POLL
            pause = POLL * random.uniform(0.8, 1.0) if looks_again else timeout  # noqa: S311 - spreads load
            return self._take() or await self._woken(pause, in_the_end=looks_again)
        finally:
            ear.end(self)
