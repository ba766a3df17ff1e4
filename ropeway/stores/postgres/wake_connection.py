"""Wake-ups by LISTEN and NOTIFY: one connection per handle and loop receives them for all listeners.

A NOTIFY takes a lock of the whole server at commit, so it is sent only if there are listeners:

    listener    LISTEN, and a shared advisory lock on (topic, queue) while it is subscribed
    writer      tries that lock exclusively; if it gets it, there are no listeners, and no NOTIFY is sent

The lock costs writers a look and no row, and the server releases it when the connection ends. Listeners to `jobs` are
subscribed while they wait, and for a short time after: a busy worker claims by itself.

A wake-up may be lost while a listener is not subscribed yet, or its connection is broken. So listeners are woken
whenever their subscription is made, and look again shortly after. Then, and when a notification says `ahead`,
claims scan from the very start (`scan_starts.py`).
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
from .scan_starts import ScanStarts
from .statements import in_schema
from .target import Target

LONGEST_PAUSE: Final = 2.0
WATCH: Final = 5.0
"""Seconds of silence after which a query checks that the server is still there."""
LINGER: Final = 1.0
"""Seconds for which a listener to `jobs` stays subscribed after its last wait."""
CHECKS_AGAIN: Final = (0.05, 0.5)
"""Seconds after a subscription: calls that looked for listeners before it have committed by then."""
POLL: Final = 0.5
"""Seconds between two polls where notifications cannot be received."""

Channel: TypeAlias = tuple[Topic, str]
"""A topic and a queue."""


class Subscription:
    """The listeners to one channel, and the advisory lock that announces them."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.listeners: set[PostgresListener] = set()
        self.queue_id: int | None = None
        """Set while the lock is held."""
        self.subscribing: asyncio.Task[None] | None = None
        self.waits = 0
        self.unsubscribing: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        for listener in [*self.listeners]:
            listener.wake()


class WakeConnection:
    """Keeps one connection that listens, and the subscriptions on it."""

    def __init__(self, target: Target, scan_starts: ScanStarts) -> None:
        self._target = target
        self._scan_starts = scan_starts
        self._subscriptions: dict[Channel, Subscription] = {}
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
        for channel in listener.channels:
            subscription = self._subscriptions.setdefault(channel, Subscription(channel))
            subscription.listeners.add(listener)
            if channel[0] != "jobs":
                self._subscribe(subscription)
        if not self.polls and (self._task is None or self._task.done()):
            self._task = self._loop.create_task(self._run(), name="ropeway-postgres-wakes")

    def remove(self, listener: PostgresListener) -> None:
        for channel in listener.channels:
            subscription = self._subscriptions.get(channel)
            if subscription is not None:
                subscription.listeners.discard(listener)
                if not subscription.listeners:
                    del self._subscriptions[channel]
                    self._unsubscribe(subscription)

    def begin(self, listener: PostgresListener) -> None:
        """Subscribes the channels of a listener that waits."""
        for channel in listener.channels:
            subscription = self._subscriptions[channel]
            subscription.waits += 1
            if subscription.unsubscribing is not None:
                subscription.unsubscribing.cancel()
                subscription.unsubscribing = None
            self._subscribe(subscription)

    def end(self, listener: PostgresListener) -> None:
        for channel in listener.channels:
            subscription = self._subscriptions.get(channel)
            if subscription is not None:
                subscription.waits -= 1
                if not subscription.waits and channel[0] == "jobs":
                    subscription.unsubscribing = self._loop.call_later(LINGER, self._unsubscribe, subscription)

    def _subscribe(self, subscription: Subscription) -> None:
        is_under_way = subscription.subscribing is not None and not subscription.subscribing.done()
        if self._link is not None and subscription.queue_id is None and not is_under_way:
            subscription.subscribing = self._loop.create_task(self._run_subscribe(subscription, self._link))

    async def _run_subscribe(self, subscription: Subscription, link: Link) -> None:
        topic, queue = subscription.channel
        with suppress(Error):
            [(queue_id,)] = await link.ask(self._listen, (text(queue), text(topic)))
            if self._link is not link:
                return
            subscription.queue_id = queue_id
            if self._subscriptions.get(subscription.channel) is not subscription:
                self._unsubscribe(subscription)
                return
            # What happened before was not received.
            self._wake(subscription, is_ahead=True)
            for pause in CHECKS_AGAIN:
                self._loop.call_later(pause, self._check_again, subscription, link)

    def _check_again(self, subscription: Subscription, link: Link) -> None:
        if self._link is not link or subscription.queue_id is None:
            return
        if subscription.channel[0] != "jobs":
            subscription.wake()
            return
        asked = link.ask(self._has_work, (number(subscription.queue_id),))
        asked.add_done_callback(lambda done: self._wake(subscription, is_ahead=True) if _is_true(done) else None)

    def _unsubscribe(self, subscription: Subscription) -> None:
        subscription.unsubscribing = None
        queue_id, subscription.queue_id = subscription.queue_id, None
        if queue_id is not None and self._link is not None and self._link.is_up:
            done = self._link.ask(self._unlisten, (number(queue_id), text(subscription.channel[0])))
            done.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def close(self) -> None:
        subscriptions = [*self._subscriptions.values()]
        for listener in {listener for subscription in subscriptions for listener in subscription.listeners}:
            listener.close()
        subscribing = [subscription.subscribing for subscription in subscriptions]
        tasks = [task for task in (self._task, *subscribing) if task is not None and not task.done()]
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
                # Listeners have a safety poll, which raises what is wrong.
                failures += 1
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            pause, failures = FIRST_PAUSE, 0
            try:
                if not link.prepares:
                    # A pooler gives the session to others: notifications would not arrive here.
                    self.polls = True
                    self._wake_all()
                    return
                link.set_listener(self._on_notification)
                await link.run(f'LISTEN "{self._target.schema}.wake"')
                self._link = link
                for subscription in self._subscriptions.values():
                    if subscription.waits or subscription.channel[0] != "jobs":
                        self._subscribe(subscription)
                await self._watch(link)
            except Error:
                pass
            finally:
                self._link = None
                for subscription in self._subscriptions.values():
                    subscription.queue_id = None
                    if subscription.subscribing is not None:
                        # While it runs, the next link would not subscribe.
                        subscription.subscribing.cancel()
                        subscription.subscribing = None
                link.abort()

    async def _watch(self, link: Link) -> None:
        """Returns when the link has ended; a query ends one whose server went silent."""
        while not link.ended.is_set():
            try:
                async with asyncio.timeout(WATCH):
                    await link.ended.wait()
            except TimeoutError:
                if self._loop.time() - link.heard_at >= WATCH:
                    await link.run("SELECT 1")

    def _wake_all(self) -> None:
        for subscription in self._subscriptions.values():
            subscription.wake()

    def _on_notification(self, payload: str) -> None:
        topic, queue_id, *ahead = payload.split(":")
        for subscription in [*self._subscriptions.values()]:
            if subscription.channel[0] == topic and str(subscription.queue_id) == queue_id:
                self._wake(subscription, is_ahead=bool(ahead))

    def _wake(self, subscription: Subscription, *, is_ahead: bool) -> None:
        topic, queue = subscription.channel
        if is_ahead and topic == "jobs":
            self._scan_starts.reset(queue)
        subscription.wake()


def _is_true(answered: asyncio.Future[list[Row]]) -> bool:
    return not answered.cancelled() and answered.exception() is None and bool(answered.result()[0][0])


class PostgresListener(EarListener[WakeConnection]):
    """A listener of this store. Its `hold` only waits: a worker that lost its connection would not learn of a job."""

    def __init__(
        self,
        wakes: Callable[[], WakeConnection],
        topic: Topic,
        queues: Sequence[str],
        usable: Callable[[], None],
        url: str,
    ) -> None:
        self.channels: Final[list[Channel]] = [(topic, queue) for queue in dict.fromkeys(queues)]
        super().__init__(wakes, usable, url)

    async def wait(self, timeout: float | None = None) -> bool:
        wakes = self._listening()
        wakes.begin(self)
        try:
            if not wakes.polls:
                return await super().wait(timeout)
            polls_again = timeout is None or timeout > POLL
            pause = POLL * random.uniform(0.8, 1.0) if polls_again else timeout  # noqa: S311 - spreads load
            return self._take() or await self._woken(pause, in_the_end=polls_again)
        finally:
            wakes.end(self)
