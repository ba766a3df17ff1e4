"""Transactional outbox of a cluster: jobs for queues in other slots are delivered at least once, and stored once.

No script can write to two slots. The script that adds jobs to a queue (its home), or settles outcomes there, writes the
jobs for other queues into the home's outbox in the same step. Each process that knows of an entry may deliver it:

    producer --- add or settle ---> home slot:  jobs, and outbox[name] = token, parcels
       |                                           |  (after a crash: read by the next tick of the home queue)
       '------------- receive -------------------- + -----> other slot: jobs, and arrived[sender]
       '--------------- sent ----------> home slot:  outbox[name] removed
                              later ticks of the other queue: arrived[sender] -> delivered[sender] -> forgotten

The step that stores a parcel also stores its sender (name, token and home of the entry), and a parcel whose sender is
known is skipped, even if its jobs have run and were removed. A sender is kept in `arrived` as long as the entry is in
the outbox, which ticks look up. After that nobody can read the parcel, and the sender is kept in `delivered` for twice
`LATEST`. A process that read the parcel before is refused once `LATEST` has passed, by the clock of the receiving
server: so one that was stopped for long cannot deliver a second time.
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
"""How long after it was read a parcel may be delivered; later it must be read again."""
ASKED_AFTER: Final[Milliseconds] = 10_000
"""How long after an arrival ticks first look whether the entry has left the outbox; most have by then."""
SOON: Final = 0.3
"""Seconds that a receiving node has to tell its clock, so that one that hangs holds up no others."""

_WIDTH: Final = 32
_TOO_LATE: Final = 1
_parcels: Final = msgspec.msgpack.Decoder(list[Parcel]).decode


class Entry(NamedTuple):
    """An entry of an outbox: the parcels of one bundle, or of one outcome."""

    home: str
    name: bytes
    """The same for the same jobs, so that an add that is repeated replaces the entry of its first try."""
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
    """The clock of each queue's server, to be read before parcels are read or written: `LATEST` counts from it."""
    names = [*dict.fromkeys(queues)]
    if now is not None:
        return dict.fromkeys(names, now)
    said = await asyncio.gather(*(call("clock", (keys.queue(name),)) for name in names))
    return dict(zip(names, said, strict=True))


async def hand_over(
    keys: Keys, call: Call, entry: Entry, began: dict[str, Instant], now: Instant | None
) -> list[list[Any] | None]:
    """Delivers an entry; returns for each parcel what `add` returns, or None if it had arrived or is too late."""
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
    """Delivers the entries that crashes left in the outbox of a queue, except those for nodes that do not answer."""
    seen = await _read(keys, call, home)
    began = await clocks_soon(keys, call, {to for entry in seen for to, *_ in entry.parcels}, now)
    for entry in await _read(keys, call, home):
        if all(to in began for to, *_ in entry.parcels):
            await hand_over(keys, call, entry, began, now)


async def clocks_soon(keys: Keys, call: Call, queues: Iterable[str], now: Instant | None) -> dict[str, Instant]:
    """The same without queues whose nodes do not answer soon."""
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
    """Forgets senders of parcels that nobody can read any more; returns True if there may be more of them."""
    base = (keys.queue(queue),)
    senders: list[bytes] = await call("arrivals", base, pack((given(now), ASKED_AFTER, 2 * LATEST, BATCH)))
    by_home: dict[str, list[str]] = {}
    for sender in map(bytes.decode, senders):
        by_home.setdefault(sender[2 * _WIDTH :], []).append(sender)
    answers = await asyncio.gather(
        *(call("pending", (keys.queue(home),), pack(own), _WIDTH) for home, own in by_home.items())
    )
    if senders:
        asked = [sender for own in by_home.values() for sender in own]
        await call("settle_arrivals", base, pack((given(now), asked, [there for said in answers for there in said])))
    return len(senders) == BATCH
