"""From a method and a path to a route."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ..errors import InvalidName
from ..job.names import job_id, queue_name, schedule_id
from .problems import Refused
from .routes import Route

CHECKS: Final = {"queue": queue_name, "id": job_id, "schedule": schedule_id}
"""Parameters of paths. What cannot be such a name is not found, and never reaches a store."""
PARAMETER: Final = "/"
"""Stands for a parameter in the tree: no segment of a path can be this."""


class Match(NamedTuple):
    route: Route
    params: dict[str, str]


class Matcher:
    """A tree of path segments: the time does not grow with the number of routes."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root: dict[str, Any] = {}
        """By segment; under `PARAMETER` goes what fits none of the others, under "" are the methods."""
        for route in routes:
            node = self._root
            for segment in _segments(route.path):
                node = node.setdefault(PARAMETER if segment.startswith("{") else segment, {})
            methods = node.setdefault("", {})
            if route.method in methods:
                raise ValueError(f"two routes for {route.method} {route.path}")
            methods[route.method] = route, [part[1:-1] for part in _segments(route.path) if part.startswith("{")]

    def match(self, method: str, path: str) -> Match:
        values: list[str] = []
        node: dict[str, Any] | None = self._root
        for segment in _segments(path):
            assert node is not None
            below = node.get(segment) if segment else None
            if below is None and segment:
                below = node.get(PARAMETER)
                values.append(segment)
            node = below
            if node is None:
                break
        methods = None if node is None else node.get("")
        if methods is None:
            raise Refused(404, "not-found", "there is nothing under this path: /openapi.json lists what there is")
        wanted = "GET" if method == "HEAD" else method
        if wanted not in methods:
            allowed = ", ".join(sorted(methods))
            raise Refused(405, "method-not-allowed", f"this path takes {allowed}", headers={"allow": allowed})
        route, names = methods[wanted]
        return Match(route, _checked(dict(zip(names, values, strict=True))))


def _segments(path: str) -> list[str]:
    return path.split("/")[1:]


def _checked(params: dict[str, str]) -> dict[str, str]:
    for name, value in params.items():
        try:
            CHECKS.get(name, _printable)(value)
        except InvalidName as wrong:
            raise Refused(404, "not-found", str(wrong)) from None
    return params


def _printable(value: str) -> str:
    if not value.isprintable():
        raise InvalidName("name", value, "use printable characters")
    return value
