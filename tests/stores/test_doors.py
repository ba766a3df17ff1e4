"""The tests' own servers leave no connection behind when they stop."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import pytest

from tests.patience import PATIENCE

from .doors import Door


@pytest.mark.parametrize("turns", range(6))
async def test_whoever_came_in_just_before_the_door_was_shut_is_told(turns: int):
    door = Door(_wait)
    door.open()
    with closing(socket.create_connection(("127.0.0.1", door.port), timeout=PATIENCE)) as guest:
        for _ in range(turns):
            await asyncio.sleep(0)
        await door.shut()
        assert _is_told(guest)


async def test_a_door_opens_again_at_its_port():
    door = Door(_wait)
    door.open()
    port = door.port
    await door.shut()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)

    door.open()
    socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    await door.shut()


async def _wait(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def _is_told(guest: socket.socket) -> bool:
    try:
        return guest.recv(1) == b""
    except ConnectionResetError:
        return True
