"""`Route`: a row of the table of routes, from which routing, authorisation, back-pressure and OpenAPI derive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ..client.queue import Queue
from ..store.contract import Store
from .admission import Class
from .problems import Refused
from .roles import Principal, Right

if TYPE_CHECKING:
    from .application import Broker

Scope: TypeAlias = Literal["queue", "named", "filtered", "none"]
"""Which queues a request is about, and so which tokens may send it.

`queue`: that of the path. `named`: those that `queues` finds in the body. `filtered`: its function leaves out what the
caller does not reach. `none`: no queue.
"""
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Reply(NamedTuple):
    """An answer with a status or headers of its own."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class Route(NamedTuple):
    method: Method
    path: str
    """With parameters in braces, as in `/v1/queues/{queue}`."""
    function: Callable[[Call], Awaitable[Any]]
    """Answers the value to encode, a `Reply`, or a response of starlette."""
    right: tuple[Right, ...]
    """The caller needs one of these; none for those that anyone may call."""
    summary: str
    scope: Scope = "queue"
    body: Any = None
    """The type of the request's body; None if it has none."""
    query: Any = None
    """A struct whose fields are the parameters of the query."""
    answer: Any = None
    """The type of the answer; None for an empty one."""
    status: int = 200
    kind: Class = "manage"
    """Which requests are refused first under load."""
    queues: Callable[[Any], Iterable[str]] | None = None
    """The queues that a body names, beside that of the path."""
    targets: Callable[[Any], list[str]] | None = None
    """Of a change in the dashboard whose path does not say what it is about: that."""
    audited: bool = False
    """Successful requests are written to the audit."""
    media: str = "application/json"
    """Of the answer."""
    tag: str = "broker"
    """Its chapter in the OpenAPI document."""


class Call:
    """One request, authorised and decoded, as a route's function receives it."""

    __slots__ = ("body", "broker", "form", "headers", "params", "principal", "query", "receive", "scope")

    def __init__(
        self,
        broker: Broker,
        principal: Principal,
        params: Mapping[str, str],
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        headers: Mapping[bytes, bytes],
    ) -> None:
        self.broker = broker
        self.principal = principal
        self.params = params
        self.scope = scope
        self.receive = receive
        self.headers = headers
        self.query: Any = None
        self.body: Any = None
        self.form: Literal["json", "msgpack"] = "json"
        """How the body was encoded, and the answer is."""

    @property
    def store(self) -> Store:
        return self.broker.store

    @property
    def queue(self) -> Queue:
        """The queue of the path."""
        return self.broker.queue(self.params["queue"])

    def reach(self, queues: Iterable[str]) -> None:
        """Refuses the request if its caller does not reach one of the queues."""
        beyond = self.principal.beyond(queues)
        if beyond is not None:
            raise forbidden(f"this token does not reach the queue {beyond!r}", queue=beyond)

    def need(self, *any_of: Right) -> None:
        if not self.principal.may(*any_of):
            raise forbidden(f"this token lacks the right to {' or '.join(any_of)}", rights=list(any_of))


def forbidden(detail: str, **facts: Any) -> Refused:
    return Refused(403, "forbidden", detail, **facts)
