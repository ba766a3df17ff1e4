"""The Redis store: most commands are one call of a script of the `lua` folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final, Self, TypeVar, cast

from ...job.instants import Instant
from ...job.record import NewJob
from ...store.commands import Claim, Command
from ...store.contract import Doing, Listener, Store
from ...store.doubt import in_doubt
from ...store.offers import Offers
from ...store.values import Added, Claimed, Topic
from ...store.waiting import ClaimListeners
from . import adding
from .clients import target_of
from .executor import Executor
from .parking import ParkingListener
from .scripts import SCRIPTS
from .subscriber import RedisListener
from .target import Target
from .verbs import VERBS, Verbs
from .verbs.run import ADD_ONE

A = TypeVar("A")

SIDE_BY_SIDE_FROM: Final = 6
"""Measured: what is on its way over the network, or being read here, costs the server nothing."""


class RedisStore(Store):
    """Jobs in Redis, which any number of machines may use at once."""

    verbs: ClassVar[Verbs] = VERBS

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._executor = self.new_executor(target)
        self._claim_listeners: ClaimListeners[RedisListener] = ClaimListeners()

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> RedisStore:  # noqa: ARG003 - a server is there or not
        """A store for `redis://host:6379/0`; see `Target` for other forms."""
        return _store_at(Target.from_url(url))

    @classmethod
    def from_client(cls, client: object) -> RedisStore:
        """Connects as a client of redis-py does, and leaves the client alone."""
        return _store_at(target_of(client))

    def new_executor(self, target: Target) -> Executor:
        return Executor(target)

    @property
    def offers(self) -> Offers:
        return Offers(side_by_side_from=SIDE_BY_SIDE_FROM)

    def sibling(self) -> Self:
        return type(self)(self._target)

    async def open(self) -> None:
        await (await self._executor.ready()).commands.open()

    async def close(self) -> None:
        await self._executor.close()

    def do(self, command: Command[A], now: Instant | None = None) -> Doing[A]:
        if isinstance(command, Claim) and command.wait:
            return cast("Doing[A]", self.claim_waiting(command))
        return cast("Doing[A]", self.verbs[type(command)](self._executor, command, now))

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        if worker is None:
            return self.listener(topic, queues)
        return self._claim_listeners.note(queues[0], worker, self.claim_listener(queues[0]))

    def listener(self, topic: Topic, queues: Sequence[str]) -> RedisListener:
        on = self._executor
        on.check()
        return RedisListener(lambda: on.on_loop().subscriber, on.keys.all_channels(topic, queues), on.check, self.url)

    def claim_listener(self, queue: str) -> RedisListener:
        on = self._executor
        on.check()
        channels, run = on.keys.all_channels("jobs", [queue]), partial(on.run_packed, queue)
        return ParkingListener(lambda: on.on_loop().subscriber, channels, on.check, self.url, run, self.settle)

    async def claim_waiting(self, request: Claim) -> Claimed:
        with self._claim_listeners.of(request, self.claim_listener) as (listener, _):
            assert isinstance(listener, ParkingListener), "only a cluster has others"
            return await listener.claim(request)


class ServerStore(RedisStore):
    """The store on one server of fixed address, to which threads without an event loop connect by themselves."""

    @property
    def offers(self) -> Offers:
        return Offers(blocking_adds=self, side_by_side_from=SIDE_BY_SIDE_FROM)

    def add_blocking(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        # Written beside the command and not shared with it: a signal that raises between the making of a coroutine and
        # its first step leaves one that was never awaited.
        on = self._executor
        on.check()
        links = on.resources.blocking
        if job := adding.alone(bundles):
            if job.queue not in on.registered:
                self._register([job.queue])
            keys = (on.keys.queue(job.queue),)
            answer = links.run(ADD_ONE, keys, *adding.arguments_of(job, now))
            if answer == b"c":
                return [[Added(job.id, "created")]]
            queues = [job.queue]
        else:
            load = adding.Load(on.keys, bundles, now, is_direct=True)
            if not load.queues:
                return [[] for _ in bundles]
            self._register(load.queues)
            answer, queues = links.run(SCRIPTS["add"], load.keys, *load.arguments), load.queues
        codes, new, holders, _ = answer
        if new:
            emptied = [queues[number - 1] for number in new]
            on.registered.difference_update(emptied)
            with in_doubt():
                self._register(emptied)
        return adding.answers_of(bundles, codes.decode(), holders)

    def _register(self, queues: Sequence[str]) -> None:
        on = self._executor
        if new := [queue for queue in queues if queue not in on.registered]:
            on.resources.blocking.execute("SADD", on.keys.queues, *new)
            on.registered.update(new)


def _store_at(target: Target) -> RedisStore:
    if target.kind == "cluster":
        from .clustered import ClusterStore  # noqa: PLC0415 - it builds on this module

        return ClusterStore(target)
    return ServerStore(target) if target.kind == "server" else RedisStore(target)
