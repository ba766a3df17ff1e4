"""What every page needs: logging in and out, files, and word of changes."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from starlette.responses import Response, StreamingResponse

from ....client.queue import Queue
from ....client.sse import HEADERS, MEDIA_TYPE
from ....job.names import job_id, queue_name
from ...problems import Refused
from ..sessions import LOGIN, LOGOUT, forgotten, inner, log_in, remembered
from ..visits import Visit, page

MEDIA: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


async def login_page(visit: Visit) -> Response:
    return visit.page("login.html", following=inner(visit.arg("next") or "/"), problem="")


async def log_in_visitor(visit: Visit) -> Response:
    following = inner(visit.field("next") or "/")
    token = visit.field("token")
    try:
        await visit.broker.start()
        await log_in(visit, token)
    except Refused as refusal:
        status = refusal.problem.status
        told = "This token is not valid." if status == 401 else refusal.problem.detail
        return visit.page("login.html", status=status, following=following, problem=told)
    return remembered(visit, visit.back(following), token)


async def log_out(visit: Visit) -> Response:
    return forgotten(visit, visit.back(LOGIN))


async def file(visit: Visit) -> Response:
    found = _file(visit.params["file"])
    if found is None:
        raise Refused(404, "not-found", "there is no such file")
    data, media, tag = found
    headers = {"etag": tag, "cache-control": "no-cache"}
    if visit.headers.get(b"if-none-match", b"").decode("latin-1") == tag:
        return Response(b"", 304, headers)
    return Response(data, 200, headers, media)


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """All that there are: nothing else is ever opened."""
    found = {}
    for each in files("ropeway.server.dashboard").joinpath("static").iterdir():
        media = MEDIA.get(each.name[each.name.rfind(".") :])
        if media is not None:
            data = each.read_bytes()
            found[each.name] = data, media, f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    return found


def _file(name: str) -> tuple[bytes, str, str] | None:
    return _files().get(name)


async def live(visit: Visit) -> Response:
    """Tells a page when to look again: about some queues, one job, or all queues."""
    names, job = [queue_name(name) for name in visit.args.get("queue", []) if name], visit.arg("job")
    visit.reach(names)

    async def queues() -> list[Queue]:
        return [visit.broker.queue(name) for name in names] if names else await visit.queues()

    messages = visit.dashboard.changes.follow(queues, job_id(job) if job else None)
    return StreamingResponse(messages, media_type=MEDIA_TYPE, headers=dict(HEADERS))


ROUTES: Final = (
    page("GET", LOGIN, login_page, "The page that asks for a token.", right=(), kind="probe"),
    page("POST", LOGIN, log_in_visitor, "Begins a session.", right=(), audited=False),
    page("POST", LOGOUT, log_out, "Ends a session.", right=(), audited=False),
    page("GET", "/static/{file}", file, "A file of the pages.", right=(), kind="probe"),
    page("GET", "/live", live, "Word of changes, as server-sent events.", media=MEDIA_TYPE),
)
