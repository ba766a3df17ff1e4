"""Transactional outbox of a cluster: jobs and news for other slots are delivered at least once, and acted on once.

No script can write to two slots. The script that adds jobs to a queue (its home), or settles outcomes there, writes the
jobs for other queues into the home's outbox in the same step. So do scripts that end, remove or retry a job with what
its parents and children in other slots must hear (lua/lib/steps.lua). Whoever knows of an entry may deliver it:

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

LATEST: Final[Milliseconds] = 60_000
"""How long after it was read a parcel may be delivered; later it must be read again."""
ASKED_AFTER: Final[Milliseconds] = 10_000
"""How long after an arrival ticks first look whether the entry has left the outbox; most have by then."""
SOON: Final = 0.3
"""Seconds that a receiving node has to tell its clock, so that one that hangs holds up no others."""

_WIDTH: Final = 32
_TOO_LATE: Final = 1
_SEVERAL: Final = "/"
"""Stands between the home of a sender and the number of its parcel; no queue has it in its name."""


class Parcel(NamedTuple):
    """What one queue is to get."""

    to: str
    packed: bytes
    """What `receive` takes: jobs as `add` takes them, or work for flows."""
    texts: bytes
    wave: int = 0
    """Delivered after all parcels of lower waves: nobody may end before its parents are there."""


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
    def receivers(self) -> set[str]:
        return {parcel.to for parcel in self.parcels}

    @property
    def stored(self) -> bytes:
        return self.token + pack(self.parcels)

    def sender(self, number: int) -> str:
        """Names a parcel; a queue may get several."""
        before = sum(parcel.to == self.parcels[number].to for parcel in self.parcels[:number])
        return (self.name + self.token).decode() + self.home + (f"{_SEVERAL}{before}" if before else "")


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
    """Delivers an entry; returns for each parcel what `receive` returns, or None if it had arrived or is too late."""

    async def send(number: int) -> Any:
        to, packed, texts, _ = entry.parcels[number]
        fence = pack((given(now), entry.sender(number), began[to], LATEST))
        return await call("receive", (keys.queue(to),), packed, texts, fence)

    answers: list[Any] = [_TOO_LATE] * len(entry.parcels)
    for wave in sorted({parcel.wave for parcel in entry.parcels}):
        numbers = [number for number, parcel in enumerate(entry.parcels) if parcel.wave == wave]
        said = await asyncio.gather(*map(send, numbers))
        for number, answer in zip(numbers, said, strict=True):
            answers[number] = answer
        if _TOO_LATE in said:
            break
    # What comes too late stays in the outbox, for the next tick.
    if _TOO_LATE not in answers:
        await call("sent", (keys.queue(entry.home),), entry.name, entry.token)
    return [answer if isinstance(answer, list) else None for answer in answers]


async def deliver(keys: Keys, call: Call, home: str, now: Instant | None) -> list[str]:
    """Delivers the entries that crashes left in the outbox of a queue, except those for nodes that do not answer.

    Returns the queues that are new.
    """
    return await deliver_posted(keys, call, home, await call("outbox", (keys.queue(home),)), now)


async def deliver_posted(keys: Keys, call: Call, home: str, posted: Sequence[bytes], now: Instant | None) -> list[str]:
    """Delivers entries, given as names and texts in turn, and what is put into other outboxes on their arrival.

    Returns the queues that are new.
    """
    left = [(home, posted)]
    new: list[str] = []
    while left:
        home, posted = left.pop()
        seen = _entries(home, posted)
        began = await clocks_soon(keys, call, {to for entry in seen for to in entry.receivers}, now)
        # Read again after the clocks: another process may have delivered them meanwhile.
        names = [entry.name for entry in seen]
        for entry in _entries(home, await call("outbox", (keys.queue(home),), *names)) if names else []:
            if entry.receivers <= began.keys():
                answers = await hand_over(keys, call, entry, began, now)
                for parcel, answer in zip(entry.parcels, answers, strict=True):
                    if answer:
                        _, is_new, further, _ = answer
                        new += [parcel.to for _ in is_new]
                        left += [(parcel.to, further)] if further else []
    return new


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


_parcels: Final = msgspec.msgpack.Decoder(list[Parcel]).decode


def _entries(home: str, posted: Sequence[bytes]) -> list[Entry]:
    return [Entry.read(home, posted[at], posted[at + 1]) for at in range(0, len(posted), 2)]


async def forget_senders(keys: Keys, call: Call, queue: str, now: Instant | None) -> bool:
    """Forgets senders of parcels that nobody can read any more; returns True if there may be more of them."""
    base = (keys.queue(queue),)
    senders: list[bytes] = await call("arrivals", base, pack((given(now), ASKED_AFTER, 2 * LATEST, BATCH)))
    by_home: dict[str, list[str]] = {}
    for sender in map(bytes.decode, senders):
        by_home.setdefault(sender[2 * _WIDTH :].partition(_SEVERAL)[0], []).append(sender)
    answers = await asyncio.gather(
        *(call("pending", (keys.queue(home),), pack(own), _WIDTH) for home, own in by_home.items())
    )
    if senders:
        asked = [sender for own in by_home.values() for sender in own]
        await call("settle_arrivals", base, pack((given(now), asked, [there for said in answers for there in said])))
    return len(senders) == BATCH
