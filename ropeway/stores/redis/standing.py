"""Claims that stand: left with the server, and served by the step that brings the jobs.

The jobs come as a message on a channel of the listener's own. A message can be lost with its connection, so whoever
is in doubt takes the claim back, and is given then what it has been given before.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from struct import Struct
from typing import Any, Final, TypeAlias

from ...job.instants import Instant
from ...store.commands import Claim
from ...store.values import Claimed, Served
from .encoding import claimed_of, pack, request_of

Run: TypeAlias = Callable[..., Awaitable[Any]]
"""Takes a verb and its arguments, and runs its script on the queue of the listener."""

_HEAD: Final = Struct(">IQQ")
_LENGTHS: Final = Struct(">III")


class Standing:
    """One claim, until it is served or taken back."""

    def __init__(self, run: Run, request: Claim, channel: str) -> None:
        self.request: Final = request
        self._run = run
        self._token = request.token.encode()
        # The same bytes each time: by them the server finds it again.
        self._packed = pack((request_of(request), channel))
        self._left_at = time.monotonic()
        self._left_when: Instant | None = None

    async def leave(self, seconds: float) -> Served | None:
        """Claims; None if there is nothing, and the claim stands for so long."""
        claimed = await self._stand(max(1, int(seconds * 1000)), stood=False)
        self._left_when = claimed.now
        return Served(claimed, self._left_at) if claimed.jobs else None

    async def claim(self) -> Served:
        """Ends it with what there is, be it nothing."""
        return self._served(await self._stand(0, stood=True))

    async def withdraw(self) -> Served | None:
        """Ends it; what it has been given before comes back."""
        claimed = claimed_of(self.request, await self._run("withdraw", self._packed))
        return self._served(claimed) if claimed.jobs else None

    def read(self, message: bytes) -> Served | None:
        """What a message gives to this claim; None if it was for another, or says only that there is something."""
        if not message:
            return None
        length, now, again_at = _HEAD.unpack_from(message)
        at = _HEAD.size + length
        if message[_HEAD.size : at] != self._token:
            return None
        ids, values, rests = [], [], []
        while at < len(message):
            of_id, of_value, of_rest = _LENGTHS.unpack_from(message, at)
            at += _LENGTHS.size
            ids.append(message[at : at + of_id])
            at += of_id
            values.append(message[at : at + of_value])
            at += of_value
            if of_rest:
                rests.append((len(ids), message[at : at + of_rest]))
                at += of_rest
        return self._served(claimed_of(self.request, (now, again_at or None, ids, values, rests)))

    async def _stand(self, lasting: int, *, stood: bool) -> Claimed:
        return claimed_of(self.request, await self._run("stand", self._packed, pack((lasting, stood))))

    def _served(self, claimed: Claimed) -> Served:
        """Says by the server's clock when the jobs were given: a message may have waited for a loop that was busy."""
        since = self._left_at
        if claimed.jobs and self._left_when is not None:
            given_at = claimed.jobs[0].started_at or claimed.now
            since = min(since + max(0, given_at - self._left_when) / 1000, time.monotonic())
        return Served(claimed, since)
