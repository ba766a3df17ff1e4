"""The answer of a receiver, and what it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Reply(NamedTuple):
    status: int
    retry_after: str | None
    excerpt: bytes
    """The first bytes of the body, as they came."""
    seconds: float


class SendsMessages(Protocol):
    """Sends messages to URLs; in tests, to a function."""

    async def send(self, url: str, headers: list[tuple[str, str]], body: bytes, allowed: Iterable[str]) -> Reply: ...

    def close(self) -> None: ...
