# /// script
# dependencies = ["starlette", "uvicorn", "uvloop"]
# [tool.benchmarks]
# title = "bare starlette"
# family = "http"
# role = "limit"
# durable = false
# note = "the limit: a route that reads its body and does nothing"
# jobs = 10_000
# ///
"""What uvicorn and starlette take for a request alone."""

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks import protocol, web


async def nothing(request):
    await request.json()
    return JSONResponse({"id": "0", "created": True})


async def serve(place):
    listening = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/nothing", nothing, methods=["POST"])])
    config = uvicorn.Config(app, http="h11", log_config=None, access_log=False, ws="none", lifespan="off")
    protocol.tell("ready")
    protocol.tell(listening.getsockname()[1])
    await uvicorn.Server(config).serve([listening])


async def http_submit(place, seconds):
    async def request(connection):
        status, _ = await connection.post("/nothing", {"type": "noop", "payload": protocol.PAYLOAD})
        return status == 200

    with web.served(place) as port:
        await asyncio.sleep(0.5)
        return await web.single(port, seconds, request)


if __name__ == "__main__":
    protocol.answer(globals())
