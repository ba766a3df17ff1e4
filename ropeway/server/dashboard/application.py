"""`Dashboard`: the ASGI application of the pages. One request from its bytes to its page.

    host -> route -> session -> right, queue -> [writes: same site -> read-only -> authorize] -> function -> page

It stands on a `Broker`, whose tokens, hosts, audit and limits are its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Self, TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...client.queue import Queue
from ...logger import log
from ...store.contract import Store
from ..application import Broker, Receive, Send, broker, path_of
from ..authentication import caller_of
from ..bodies import Gone
from ..matching import Matcher
from ..problems import Refused, problem_of
from ..roles import Principal
from ..routes import Route, forbidden
from .changes import Changes
from .operations import Operations
from .redacting import Redact
from .rendering import Renderer
from .sessions import LOGIN, LOGOUT, check_same_site, forgotten, with_cookie
from .summaries import Summaries
from .table import ROUTES
from .visits import Visit

Authorize: TypeAlias = Callable[[Principal, str, str], bool | Awaitable[bool]]
"""Takes who asks, what they want to do (such as `retry`), and with what (such as `mail` or `mail/<id>`)."""

Authenticate: TypeAlias = Callable[[Request], Principal | Response | Awaitable[Principal | Response | None] | None]
"""Takes a request; answers who asks, None for nobody, or what is answered instead, such as a way to the login."""

HOME: Final = "/overview"
"""Also at the root, whose path has no segment that a route could name."""
ENTRY: Final = (LOGIN, LOGOUT)
"""Where tokens become sessions."""
HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)
"""Of every answer, unless it has its own."""


class Options(NamedTuple):
    """What a dashboard shows and allows."""

    read_only: bool = False
    authorize: Authorize | None = None
    redact: Redact | None = None
    environment: str | None = None
    """Shown beside the name on every page, as `production`."""
    authenticate: Authenticate | None = None
    """Says who asks, in place of tokens and of the rule for this machine."""


class Dashboard:
    """An ASGI application over a store, to be mounted under any prefix or served by itself."""

    def __init__(self, broker: Broker, options: Options | None = None) -> None:
        self.broker: Final = broker
        self.options: Final = options or Options()
        self.changes: Final = Changes(broker)
        self.summaries: Final = Summaries(broker)
        self.operations: Final = Operations()
        self.renderer: Final = Renderer(self.options.redact)
        routes = ROUTES if self.options.authenticate is None else [route for route in ROUTES if route.path not in ENTRY]
        self._matcher: Final = Matcher(routes)

    async def __aenter__(self) -> Self:
        await self.broker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.broker.close()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.broker(scope, receive, send)
            return
        headers = dict(scope["headers"])
        visit = Visit(self, scope, receive, headers)
        try:
            response = await self._respond(visit)
        except Gone:
            return
        except Exception as error:  # noqa: BLE001 - the visitor is told, and the log
            response = self._failure(visit, error)
        own = {name for name, _ in response.raw_headers}
        response.raw_headers += [each for each in HEADERS if each[0] not in own]
        await response(scope, receive, send)

    async def _respond(self, visit: Visit) -> Response:
        scope = visit.scope
        self.broker.origins.check_host(visit.headers)
        visit.read_args()
        path = path_of(scope)
        if path == "":
            return RedirectResponse(f"{visit.root}/", 308)
        route, visit.params = self._matcher.match(scope["method"], path.rstrip("/") or HOME)
        if route.right:
            await self.broker.start()
            instead = await self._authorise(visit, route)
            if instead is not None:
                return instead
        if route.method != "GET":
            check_same_site(self.broker.origins, visit.headers)
            await visit.read_form()
            if route.right:
                await self._allow(visit, route)
        with self.broker.admission.enter(route.kind):
            response: Response = await route.function(visit)
        if route.audited:
            self.broker.audit.done(visit.principal.name, caller_of(scope).address, route, visit.params)
        return response

    async def _authorise(self, visit: Visit, route: Route) -> Response | None:
        """Whether the visitor may ask this; what the application answers instead, if it does."""
        caller = caller_of(visit.scope)
        name = "anyone"
        try:
            who = await self._visitor(visit)
            if isinstance(who, Response):
                return who
            visit.principal = who
            name = who.name
            visit.need(*route.right)
            if route.scope == "queue":
                visit.reach([visit.params["queue"]])
        except Refused as refusal:
            if refusal.problem.status != 401 or route.method != "GET":
                self.broker.audit.refused(name, caller.address, route, visit.params, refusal)
            raise
        return None

    async def _visitor(self, visit: Visit) -> Principal | Response:
        ask = self.options.authenticate
        if ask is None:
            headers = with_cookie(visit.scope["headers"])
            return await self.broker.authenticator.principal(headers, caller_of(visit.scope))
        # Without its body, which is read once.
        answer = ask(Request(visit.scope))
        found = await answer if inspect.isawaitable(answer) else answer
        if found is None:
            raise Refused(401, "unauthorized", "log in to the application that shows these pages")
        if not isinstance(found, Principal | Response):
            raise TypeError(f"authenticate answered {type(found).__name__}: it must be a Principal, a Response or None")
        return found

    async def _allow(self, visit: Visit, route: Route) -> None:
        """Whether a write may be done at all, and by this visitor."""
        try:
            if self.options.read_only:
                raise forbidden("this dashboard only shows: it was made with read_only")
            action, targets = _asked(visit, route)
            for target in targets if self.options.authorize is not None else []:
                assert self.options.authorize is not None
                answer = self.options.authorize(visit.principal, action, target)
                if not (await answer if inspect.isawaitable(answer) else answer):
                    raise forbidden(f"you may not {action} {target}", action=action, target=target)
        except Refused as refusal:
            address = caller_of(visit.scope).address
            self.broker.audit.refused(visit.principal.name, address, route, visit.params, refusal)
            raise

    def _failure(self, visit: Visit, error: Exception) -> Response:
        problem, extra = problem_of(error)
        if problem.status == 401 and not visit.is_part and self.options.authenticate is None:
            following = quote(visit.address, safe="")
            response: Response = RedirectResponse(f"{visit.root}{LOGIN}?next={following}", 303)
            return forgotten(visit, response) if visit.has_cookie else response
        response = visit.page("problem.html", status=problem.status, title=problem.title, problem=problem)
        response.headers.update(extra)
        return response


def _asked(visit: Visit, route: Route) -> tuple[str, list[str]]:
    """What a change does, and with what: as in its path, or, of those that concern many jobs, as in its form."""
    if route.targets is None:
        return route.path.rpartition("/")[2], ["/".join(visit.params.values())]
    return visit.field("action"), route.targets(visit)


def dashboard(
    on: Store | Queue | Sequence[Queue] | str | None = None,
    *,
    read_only: bool = False,
    authorize: Authorize | None = None,
    redact: Redact | None = None,
    environment: str | None = None,
    authenticate: Authenticate | None = None,
    hosts: Sequence[str] = (),
    no_auth: bool = False,
) -> Dashboard:
    """The dashboard as an ASGI application, for a mount in your own: of a URL, a store, or queues of one store.

    Visitors log in with a token of the store (`ropeway tokens create --role operator`). While it has none, and always
    with `no_auth`, those on this machine need none, and others are refused. `hosts` are the names under which it may
    be called. `authorize(who, action, target)` is asked before every change, beside the roles; `redact(kind, value)`
    answers what is shown of a job's data, results, errors and logs. `authenticate(request)` says who asks, in place of
    tokens: for applications with users of their own.
    """
    inner = broker(on, hosts=hosts, no_auth=no_auth)
    log.debug("a dashboard shows %s", inner.store.url)
    return Dashboard(inner, Options(read_only, authorize, redact, environment, authenticate))
