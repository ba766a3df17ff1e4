"""Parked claims: a worker that found no jobs leaves its claim on the server, and the script that adds jobs serves it.

    worker                     server                                    producer
    park ------- claim ------> no jobs: the claim goes into `parked`
      |                        `parked`: [claim, channel] <------------- add: finds the claim, makes the
      |                                                                  job active under its token
      | <---- the jobs, on the worker's own channel --------------------'
    runs them

So a job reaches an idle worker in one trip. Only the message can be lost, with its connection: a worker in doubt takes
the claim back (`unpark`). If it is still parked, it was not served; if it is gone, the server gives the jobs again that
are locked under its token. A claim is parked for seconds only, and is not served when nobody subscribes to its channel
any more, so that no job goes to a worker that has died. In a cluster no claim is parked: its servers cannot tell who
subscribes.
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


class ParkedClaim:
    """One claim, from the moment it is parked until it is served or taken back."""

    def __init__(self, run: Run, request: Claim, channel: str) -> None:
        self.request: Final = request
        self._run = run
        self._token = request.token.encode()
        # The same bytes each time: by them the server finds it again.
        self._packed = pack((request_of(request), channel))
        self._parked_at = time.monotonic()
        self._parked_when: Instant | None = None

    async def park(self, seconds: float) -> Served | None:
        """Claims jobs; None if there are none, and the claim is parked for `seconds`."""
        claimed = await self._claim_or_park(max(1, int(seconds * 1000)), was_parked=False)
        self._parked_when = claimed.now
        return Served(claimed, self._parked_at) if claimed.jobs else None

    async def claim_now(self) -> Served:
        """Takes the claim back and claims what there is, perhaps nothing."""
        return self._served(await self._claim_or_park(0, was_parked=True))

    async def take_back(self) -> Served | None:
        """Takes the claim back; answers the jobs that it was served with, if any."""
        claimed = claimed_of(self.request, await self._run("unpark", self._packed))
        return self._served(claimed) if claimed.jobs else None

    def read(self, message: bytes) -> Served | None:
        """The jobs in a message; None if it is for another claim, or too large to carry the jobs themselves."""
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

    async def _claim_or_park(self, lasting: int, *, was_parked: bool) -> Claimed:
        return claimed_of(self.request, await self._run("park", self._packed, pack((lasting, was_parked))))

    def _served(self, claimed: Claimed) -> Served:
        """Dates the claim by the server's clock, because a message may have waited for a busy event loop."""
        since = self._parked_at
        if claimed.jobs and self._parked_when is not None:
            given_at = claimed.jobs[0].started_at or claimed.now
            since = min(since + max(0, given_at - self._parked_when) / 1000, time.monotonic())
        return Served(claimed, since)
