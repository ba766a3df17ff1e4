from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ropeway import Queue

from .terminal import Terminal


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with three waiting jobs in `emails` and one in `images`."""

    async def fill() -> None:
        async with Queue("emails", made) as emails:
            await emails.add_many([("send_email", {"to": n}) for n in range(3)])
            await Queue("images", store=emails.store).add("resize_image")

    made = f"sqlite:///{tmp_path}/jobs.db"
    asyncio.run(fill())
    return made


@pytest.fixture
def open_terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*arguments: str, **options: object) -> Terminal:
        opened.append(Terminal(*arguments, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()
