"""`Broker`: the ASGI application. One request from its bytes to its answer.

    host and origin -> route -> principal, right, queue -> admission -> body -> function -> answer
          421, 403      404, 405     401, 429, 403            503      4xx

Everything before the body is cheap, and needs nothing that the client can make large. What a route needs of each step
stands in its row of the table (`table.py`).
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, cast

import msgspec
from starlette.responses import Response

from ..client.queue import Queue
from ..errors import InvalidOption
from ..logger import log
from ..metrics import Exporter
from ..showing import shown
from ..store.contract import Store
from ..store.url import connect
from ..store.values import Counts
from .admission import Admission, Overloaded
from .audit import Audit
from .authentication import Authenticator, caller_of
from .bodies import MEDIA, Bodies, Gone, decode_body, decode_query, form_of, is_bodiless, may_be_empty
from .held_jobs import HeldJobs
from .http_workers import HttpWorkers
from .limits import DEFAULTS, Limits
from .listening import Listenings
from .matching import Matcher
from .openapi import document
from .origins import Origins
from .problems import Refused, problem_of
from .rates import Rates
from .roles import Principal
from .routes import Call, Reply, Route, forbidden
from .schemas import Schemas
from .store_watch import StoreWatch
from .table import ROUTES
from .upkeep import Upkeep

Send = Callable[[Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]

MOST_QUEUES: Final = 1_000
"""Queue objects that are kept, so that adds of the same moment share a round trip."""
UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""Of every answer, unless it has its own."""
NOBODY: Final = Principal("anyone", frozenset())

_json: Final = msgspec.json.Encoder()
_msgpack: Final = msgspec.msgpack.Encoder()


class Access(NamedTuple):
    """Who may call a broker, and how."""

    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    no_auth: bool = False
    test_clock: bool = False
    """If true, commands may bring their own time. For tests alone: callers could end locks and delays."""


class Broker:
    """An ASGI application over a store. It opens the store with the first request, and closes one of its own."""

    def __init__(
        self,
        store: Store,
        *,
        owns_store: bool,
        queues: Mapping[str, Queue],
        limits: Limits,
        access: Access,
        schemas: Schemas,
        routes: Sequence[Route] = ROUTES,
    ) -> None:
        self.store: Final = store
        self.limits: Final = limits
        self.routes: Final = tuple(routes)
        self.test_clock: Final = access.test_clock
        self.admission: Final = Admission(limits.requests, limits.waiting)
        self.rates: Final = Rates(limits.rate)
        self.bodies: Final = Bodies(limits.body, limits.body_seconds)
        self.audit: Final = Audit(store)
        self.authenticator: Final = Authenticator(store, no_auth=access.no_auth)
        self.workers: Final = HttpWorkers(store)
        self.watch: Final = StoreWatch(store, self.admission)
        self.upkeep: Final = Upkeep(store, limits, self.workers, self.watch)
        self.listenings: Final = Listenings()
        self.held: Final = HeldJobs(store)
        self.schemas: Final = schemas
        self.exporter: Final = Exporter(store)
        self.origins: Final = Origins(access.hosts, access.origins)
        self.closing: Final = asyncio.Event()
        """Set when the server ends: requests that wait are answered then."""
        self._matcher: Final = Matcher(self.routes)
        self._beginnings: Final = frozenset(route.path.split("/")[1] for route in self.routes)
        self._owns_store: Final = owns_store
        self._given: Final = dict(queues)
        self._queues: OrderedDict[str, Queue] = OrderedDict()
        self._started = False
        self.pages: Callable[[Any, Receive, Send], Awaitable[None]] | None = None
        """The dashboard, which answers everything beside the API."""
        self.sums: dict[str, tuple[float, Counts, dict[str, int]]] = {}
        """Numbers of queues for `/v1/stats`, with the time of their reading."""
        self.ready_at = -math.inf
        """When the store last answered a probe, on the monotonic clock."""

    @cached_property
    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of its routes."""
        return document(self.routes)

    # Life

    async def start(self) -> None:
        """Opens the store and begins its upkeep; a second call does nothing."""
        if not self._started:
            self._started = True
            try:
                await self.store.open()
            except BaseException:
                self._started = False
                raise
            self.upkeep.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def end_waits(self) -> None:
        """Has requests that wait answered at once, for a server that is about to end."""
        self.closing.set()
        self.bodies.end()

    async def close(self) -> None:
        """Ends the upkeep, and closes the store unless it was passed in."""
        self.end_waits()
        self.listenings.close()
        await self.upkeep.stop()
        await self.audit.close()
        if self._owns_store:
            await self.store.close()

    def queue(self, name: str) -> Queue:
        if (given := self._given.get(name)) is not None:
            return given
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(name, store=self.store)
            if len(self._queues) > MOST_QUEUES:
                self._queues.popitem(last=False)
        return queue

    # Requests

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http" and self.pages is not None and not self._is_api(path_of(scope)):
            await self.pages(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    def _is_api(self, path: str) -> bool:
        return path[1:].partition("/")[0] in self._beginnings

    async def _live(self, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "lifespan.startup"
        try:
            await self.start()
        except Exception as error:  # noqa: BLE001 - the server prints it and ends
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Any, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        try:
            response = await self._respond(scope, receive, headers)
        except Gone:
            return
        except Exception as error:  # noqa: BLE001 - the client is told, and the log
            if isinstance(error, Overloaded):
                await self.admission.pause()
            problem, extra = problem_of(error)
            response = _plain(_json.encode(problem), problem.status, "application/problem+json", extra)
        response.raw_headers += self._headers(response, headers)
        await response(scope, receive, send)

    def _headers(self, response: Response, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        own = {name for name, _ in response.raw_headers}
        return [each for each in HEADERS if each[0] not in own] + self.origins.headers(headers)

    async def _respond(self, scope: Any, receive: Receive, headers: Mapping[bytes, bytes]) -> Response:
        method = scope["method"]
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # Which of the two counts is where servers in a row may differ, so that one takes a body for a request.
            raise Refused(400, "two-lengths", "a body has a length or is chunked", headers={"connection": "close"})
        self.origins.check_host(headers)
        if (preflight := self.origins.preflight(method, headers)) is not None:
            return preflight
        route, params = self._matcher.match(method, path_of(scope))
        if method in UNSAFE:
            self.origins.check_origin(headers)
        principal = NOBODY
        if route.right:
            await self.start()
            principal = await self._authorised(route, params, scope)
        call = Call(self, principal, params, scope, receive, headers)
        with self.admission.enter(route.kind):
            try:
                await self._decode(route, call)
                answer = await route.function(call)
            except Refused as refusal:
                if refusal.problem.status == 403:
                    self.audit.refused(call.principal.name, caller_of(scope).address, route, params, refusal)
                raise
        if route.audited:
            self.audit.done(principal.name, caller_of(scope).address, route, params)
        return answer if isinstance(answer, Response) else _encoded(route, call, answer)

    async def _authorised(self, route: Route, params: Mapping[str, str], scope: Any) -> Principal:
        caller = caller_of(scope)
        name = "anyone"
        try:
            principal = await self.authenticator.principal(scope["headers"], caller)
            name = principal.name
            if not principal.may(*route.right):
                raise forbidden(f"this token lacks the right to {' or '.join(route.right)}", rights=list(route.right))
            if route.scope == "queue" and not principal.reaches(params["queue"]):
                raise forbidden(f"this token does not reach the queue {params['queue']!r}", queue=params["queue"])
        except Refused as refusal:
            self.audit.refused(name, caller.address, route, params, refusal)
            raise
        self.rates.check(principal.name)
        return principal

    async def _decode(self, route: Route, call: Call) -> None:
        if route.query is not None or call.scope["query_string"]:
            call.query = decode_query(call.scope["query_string"], route.query)
        if route.body is None:
            return
        if is_bodiless(call.headers) and may_be_empty(route.body):
            call.body = route.body()
            return
        call.form = form_of(call.headers)
        data = await self.bodies.read(call.receive, call.headers)
        call.body = data if route.body is bytes else decode_body(data, call.form, route.body)
        if route.queues is not None:
            call.reach(route.queues(call.body))


def path_of(scope: Any) -> str:
    """The path without the prefix under which the application is mounted."""
    path: str = scope["path"]
    root = root_of(scope)
    return path[len(root) :] if root and path.startswith(root) else path


def root_of(scope: Any) -> str:
    """The prefix under which the application is mounted, without a slash at its end."""
    return str(scope.get("root_path", "")).rstrip("/")


def _encoded(route: Route, call: Call, answer: Any) -> Response:
    status, headers = route.status, {}
    if isinstance(answer, Reply):
        answer, status, headers = answer.value, answer.status, dict(answer.headers)
    if isinstance(answer, bytes):
        return _plain(answer, status, MEDIA[call.form] if route.media == "application/json" else route.media, headers)
    if route.answer is None:
        return _plain(b"", 204, None, headers)
    if call.form == "msgpack":
        # A payload may have larger integers than MessagePack can hold: then the answer is JSON.
        with suppress(OverflowError):
            return _plain(_msgpack.encode(answer), status, MEDIA["msgpack"], headers)
    return _plain(_json.encode(answer), status, MEDIA["json"], headers)


def _plain(body: bytes, status: int, media: str | None, headers: Mapping[str, str]) -> Response:
    return Response(body, status, dict(headers), media)


def broker(
    on: Store | Queue | Sequence[Queue] | str | None = None,
    *,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    limits: Limits = DEFAULTS,
    no_auth: bool = False,
    test_clock: bool = False,
    schemas: Mapping[str, Any] | None = None,
) -> Broker:
    """An ASGI application that serves a store over HTTP: a URL, a store, or queues of one store.

    It can be mounted under any prefix. `hosts` are the names under which it may be called, beside those of this
    machine; `origins` are web pages of other sites that may call it. Without tokens in the store (`ropeway tokens
    create`), and always with `no_auth`, callers on this machine need none; others are refused.
    `schemas` are JSON Schemas of payloads, by type, queue, or `queue/type`.
    """
    queues: Sequence[Queue] = ()
    if isinstance(on, Queue):
        queues = [on]
    elif isinstance(on, Sequence) and not isinstance(on, str):
        queues = on
    if queues:
        stores = {id(queue.store): queue.store for queue in queues}
        if len(stores) > 1:
            raise InvalidOption("on", "cannot be queues of several stores: make a broker for each store")
        [store] = stores.values()
    elif isinstance(on, Store) or callable(getattr(on, "settle", None)):
        store = cast(Store, on)
    elif on is None or isinstance(on, str):
        store = connect(on)
    else:
        raise InvalidOption("on", f"cannot be {shown(on)}: give a URL, a store, or queues")
    log.debug("a broker serves %s", store.url)
    return Broker(
        store,
        owns_store=on is None or isinstance(on, str),
        queues={queue.name: queue for queue in queues},
        limits=limits,
        access=Access(hosts, origins, no_auth, test_clock),
        schemas=Schemas(schemas),
    )
