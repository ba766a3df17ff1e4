"""The way of jobs from the queue that took them to queues in other slots: delivered at least once, stored once.

Several may deliver the same parcel: its producer, and whoever ticks its home before that knows of the arrival. So the
step that stores a parcel keeps its sender too, and a parcel whose sender is known is skipped, even if its jobs have run
and are gone. A sender is kept while its home still has the parcel, which ticks ask for. When nobody can read the parcel
any more, it is kept for twice `LATEST`: whoever read it before is refused after `LATEST`, by the clock of the server
that takes it, so a process that was stopped for long delivers nothing for the second time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from ...errors import StoreUnavailable
from ...job.ids import new_token
from ...job.instants import Instant, Milliseconds
from ...store.values import BATCH
from .encoding import given, pack
from .keys import Keys

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""Takes a verb, keys and arguments, as the store's own way to run a script."""
Parcel: TypeAlias = tuple[str, bytes, bytes]
"""A queue, and what `add` takes."""

LATEST: Final[Milliseconds] = 60_000
"""How long a parcel may be under way; after that it is read anew."""
ASKED_AFTER: Final[Milliseconds] = 10_000
"""Most parcels have left their outbox long before."""
SOON: Final = 0.3
"""Seconds in which a node that is to take parcels tells the time: one that hangs holds up no others."""

_WIDTH: Final = 32
_TOO_LATE: Final = 1
_parcels: Final = msgspec.msgpack.Decoder(list[Parcel]).decode


class Entry(NamedTuple):
    """The parcels of one bundle, in the outbox of their home."""

    home: str
    name: bytes
    """The same for the same jobs: an add that is repeated replaces what its first try left."""
    token: bytes
    parcels: Sequence[Parcel]

    @classmethod
    def of(cls, home: str, own: Iterable[bytes], parcels: Sequence[Parcel]) -> Entry:
        name = sha256(b"".join(own) + pack(parcels)).hexdigest()[:_WIDTH]
        return cls(home, name.encode(), new_token().encode(), parcels)

    @classmethod
    def read(cls, home: str, name: bytes, stored: bytes) -> Entry:
        return cls(home, name, stored[:_WIDTH], _parcels(stored[_WIDTH:]))

    @property
    def stored(self) -> bytes:
        return self.token + pack(self.parcels)

    @property
    def sender(self) -> str:
        return (self.name + self.token).decode() + self.home


async def clocks(keys: Keys, call: Call, queues: Iterable[str], now: Instant | None) -> dict[str, Instant]:
    """The clock of each queue's server. Ask before parcels are read or written: their way begins then."""
    names = [*dict.fromkeys(queues)]
    if now is not None:
        return dict.fromkeys(names, now)
    said = await asyncio.gather(*(call("clock", (keys.queue(name),)) for name in names))
    return dict(zip(names, said, strict=True))


async def hand_over(
    keys: Keys, call: Call, entry: Entry, began: dict[str, Instant], now: Instant | None
) -> list[list[Any] | None]:
    """Delivers parcels; answers for each what `add` answers, or none if it had arrived, or comes too late."""
    answers = await asyncio.gather(
        *(
            call("receive", (keys.queue(to),), *jobs, pack((given(now), entry.sender, began[to], LATEST)))
            for to, *jobs in entry.parcels
        )
    )
    # What comes too late stays in the outbox, for the next tick.
    if _TOO_LATE not in answers:
        await call("sent", (keys.queue(entry.home),), entry.name, entry.token)
    return [answer if isinstance(answer, list) else None for answer in answers]


async def deliver(keys: Keys, call: Call, home: str, now: Instant | None) -> None:
    """Sends on what a crash left in the outbox of a queue; what goes to a node that is away stays there."""
    seen = await _read(keys, call, home)
    began = await clocks_soon(keys, call, {to for entry in seen for to, *_ in entry.parcels}, now)
    for entry in await _read(keys, call, home):
        if all(to in began for to, *_ in entry.parcels):
            await hand_over(keys, call, entry, began, now)


async def clocks_soon(keys: Keys, call: Call, queues: Iterable[str], now: Instant | None) -> dict[str, Instant]:
    """`clocks` of those queues whose nodes answer soon."""
    names = [*dict.fromkeys(queues)]
    said = await asyncio.gather(*(_clock_soon(keys, call, name, now) for name in names))
    return {name: clock for name, clock in zip(names, said, strict=True) if clock is not None}


async def _clock_soon(keys: Keys, call: Call, queue: str, now: Instant | None) -> Instant | None:
    try:
        async with asyncio.timeout(SOON):
            return (await clocks(keys, call, [queue], now))[queue]
    except (StoreUnavailable, TimeoutError):
        return None


async def _read(keys: Keys, call: Call, home: str) -> list[Entry]:
    left = await call("outbox", (keys.queue(home),))
    return [Entry.read(home, left[at], left[at + 1]) for at in range(0, len(left), 2)]


async def forget_senders(keys: Keys, call: Call, queue: str, now: Instant | None) -> bool:
    """Of parcels that arrived at a queue and that nobody can read any more; says whether there may be more."""
    here = (keys.queue(queue),)
    senders: list[bytes] = await call("arrivals", here, pack((given(now), ASKED_AFTER, 2 * LATEST, BATCH)))
    by_home: dict[str, list[str]] = {}
    for sender in map(bytes.decode, senders):
        by_home.setdefault(sender[2 * _WIDTH :], []).append(sender)
    answers = await asyncio.gather(
        *(call("pending", (keys.queue(home),), pack(own), _WIDTH) for home, own in by_home.items())
    )
    if senders:
        asked = [sender for own in by_home.values() for sender in own]
        await call("settle_arrivals", here, pack((given(now), asked, [there for said in answers for there in said])))
    return len(senders) == BATCH
