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

import math
from collections.abc import Awaitable, Callable
from struct import Struct
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from ...job.instants import Instant, Milliseconds
from ...store.values import Claimed
from ...store.waiting import WaitingClaim
from .encoding import claimed_of, pack, request_of

Run: TypeAlias = Callable[..., Awaitable[Any]]
"""Takes a verb and its arguments, and runs its script on the queue of the listener."""

_HEAD: Final = Struct(">IQQ")
_LENGTHS: Final = Struct(">III")
WITHDRAWN: Final = b"withdrawn "
"""How the message begins that `withdraw` sends; the token follows."""


class ParkedClaim:
    """One waiting claim, from the moment it is parked until it is served or taken back."""

    def __init__(self, run: Run, waiting: WaitingClaim, channel: str) -> None:
        self._run = run
        self._waiting = waiting
        self._request = waiting.plain
        self._token = waiting.plain.token.encode()
        # The same bytes each time: by them the server finds it again.
        self._packed = pack((request_of(replace(waiting.plain, repeat=False)), channel))
        self._may_be_parked = waiting.plain.repeat
        self._sent_after: Milliseconds = 0 if waiting.plain.repeat else waiting.waited
        self._parked_when: Instant | None = None

    async def claim(self, seconds: float) -> Claimed:
        """Claims jobs. If there are none, the claim is parked for `seconds`, or taken back if that is 0."""
        lasting, was_parked = math.ceil(seconds * 1000), self._may_be_parked
        self._may_be_parked = True
        claimed = await self._read("park", pack((lasting, was_parked)))
        if self._parked_when is None:
            self._parked_when = claimed.now
        return claimed

    async def take_back(self) -> Claimed:
        """Takes the claim back; answers the jobs that it was given."""
        return await self._read("unpark") if self._may_be_parked else Claimed([], 0)

    def read(self, message: bytes) -> Claimed | None:
        """The jobs in a message; None if it is for another claim, or too large to carry the jobs themselves."""
        if not message or message.startswith(WITHDRAWN):
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
                rests.append((len(ids), len(ids), message[at : at + of_rest]))
                at += of_rest
        return self._dated(claimed_of(self._request, (now, again_at or None, ids, values, rests)))

    def is_withdrawn_by(self, message: bytes) -> bool:
        return message == WITHDRAWN + self._token

    async def _read(self, script: str, *arguments: bytes) -> Claimed:
        return self._dated(claimed_of(self._request, await self._run(script, self._packed, *arguments)))

    def _dated(self, claimed: Claimed) -> Claimed:
        """Dates the claim by the server's clock, because a message may have waited for a busy event loop."""
        if not claimed.jobs:
            return claimed
        waited = self._sent_after
        if self._parked_when is not None:
            given_at = claimed.jobs[0].started_at or claimed.now
            waited = min(waited + max(0, given_at - self._parked_when), self._waiting.waited)
        return replace(claimed, waited=waited)
