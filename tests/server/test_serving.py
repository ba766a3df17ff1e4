"""Connections of the server."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx

from ropeway.server import broker
from ropeway.server.serving import LOCAL, server_for
from ropeway.store.contract import Store


async def test_the_body_of_an_answer_does_not_wait_until_its_head_was_acknowledged(store: Store):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = server_for(broker(store), LOCAL)
        serving_it = asyncio.create_task(server.serve([listening]))
        await server.is_serving.wait()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
            await client.get("/livez")
            connections: set[Any] = server.server_state.connections
            [connection] = connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        server.should_exit = True
        await serving_it
