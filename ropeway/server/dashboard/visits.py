"""`Visit`: one request of a browser, as a page's function receives it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode

from starlette.responses import RedirectResponse, Response

from ...showing import on_one_line
from ..application import path_of, root_of
from ..bodies import MOST_PARAMETERS
from ..problems import Refused
from ..roles import RESERVED, Principal
from ..routes import Call, Method, Route
from .sessions import COOKIE, cookies_of

if TYPE_CHECKING:
    from ...client.queue import Queue
    from .application import Dashboard

NOBODY: Final = Principal("anyone", frozenset())
PART: Final = b"x-ropeway-part"
"""The header by which a page asks for its moving parts alone."""
MOST_FORM_BYTES: Final = 4 * 1024 * 1024
LONGEST_NOTE: Final = 500


class Visit(Call):
    __slots__ = ("args", "dashboard", "fields")

    def __init__(self, dashboard: Dashboard, scope: Any, receive: Any, headers: Mapping[bytes, bytes]) -> None:
        super().__init__(dashboard.broker, NOBODY, {}, scope, receive, headers)
        self.dashboard = dashboard
        self.args: dict[str, list[str]] = {}
        """The parameters of the address."""
        self.fields: dict[str, list[str]] = {}
        """The fields of the form."""

    # Where it is

    @property
    def root(self) -> str:
        """The prefix under which the dashboard is mounted, for every link."""
        return quote(root_of(self.scope))

    @property
    def address(self) -> str:
        """Path and parameters, without the prefix."""
        path = quote(path_of(self.scope) or "/")
        query = self.scope["query_string"].decode("latin-1")
        return f"{path}?{query}" if query else path

    @property
    def is_part(self) -> bool:
        return PART in self.headers

    @property
    def has_cookie(self) -> bool:
        return self.dashboard.options.authenticate is None and COOKIE in cookies_of(self.headers)

    # What was asked

    def arg(self, name: str) -> str:
        """A parameter of the address; "" if it is not there."""
        return self.args.get(name, [""])[-1].strip()

    def field(self, name: str) -> str:
        """A field of the form; "" if it is not there."""
        return self.fields.get(name, [""])[-1].strip()

    def read_args(self) -> None:
        self.args = _read(self.scope["query_string"])

    async def read_form(self) -> None:
        kind = self.headers.get(b"content-type", b"application/x-www-form-urlencoded").split(b";")[0].strip()
        if kind != b"application/x-www-form-urlencoded":
            raise Refused(415, "unsupported-media-type", "the content-type must be that of a form")
        data = await self.broker.bodies.read(self.receive, self.headers, MOST_FORM_BYTES)
        self.fields = _read(data, most=2_000)

    # What it may see

    @property
    def may_operate(self) -> bool:
        """Whether the page offers changes; each is checked again when it is asked for."""
        return self.principal.may("operate") and not self.dashboard.options.read_only

    async def queues(self) -> list[Queue]:
        """The queues that the visitor reaches, by name; those of Ropeway itself are not listed."""
        names = await self.dashboard.summaries.names()
        return [self.broker.queue(name) for name in names if self.principal.reaches(name)]

    def is_listed(self, queue: str) -> bool:
        return not queue.startswith(RESERVED) and self.principal.reaches(queue)

    # Answers

    def page(self, template: str, *, status: int = 200, **facts: Any) -> Response:
        text = self.dashboard.renderer.render(self, template, facts)
        if not self.is_part or status != 200:
            return Response(text, status, media_type="text/html")
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
        headers = {"etag": tag, "cache-control": "no-cache, private"}
        if self.headers.get(b"if-none-match", b"").decode("latin-1") == tag:
            return Response(b"", 304, headers)
        return Response(text, status, headers, "text/html")

    def back(self, path: str, note: str = "", **args: str) -> Response:
        """To another page of the dashboard, with a note that it shows."""
        given = {**args, **({"note": on_one_line(note, LONGEST_NOTE)} if note else {})}
        mark = "&" if "?" in path else "?"
        return RedirectResponse(f"{self.root}{path}{mark + urlencode(given) if given else ''}", 303)


def named_queue(visit: Visit) -> list[str]:
    """What a form is about that names a queue; `*` if it names none, which are all."""
    return [visit.field("queue") or "*"]


def page(
    method: Method,
    path: str,
    function: Callable[[Visit], Awaitable[Response]],
    summary: str,
    **more: Any,
) -> Route:
    """A row of the table of pages: reading needs `read`, and writing `operate` unless `right` says otherwise."""
    given = {
        "right": ("read",) if method == "GET" else ("operate",),
        "scope": "queue" if "{queue}" in path else "filtered",
        "audited": method != "GET",
        "media": "text/html",
        "tag": "dashboard",
        **more,
    }
    handler: Any = function
    return Route(method, path, handler, summary=summary, **given)


def _read(text: bytes, most: int = MOST_PARAMETERS) -> dict[str, list[str]]:
    try:
        return parse_qs(text.decode("utf-8"), keep_blank_values=True, max_num_fields=most, errors="strict")
    except ValueError:
        raise Refused(400, "malformed-query", "the query or the form cannot be read") from None
