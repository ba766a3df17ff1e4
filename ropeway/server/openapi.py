"""The OpenAPI 3.1 document: made from the table of routes and the types of the code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from .. import __version__
from ..job.names import ID_PATTERN, LONGEST_SCHEDULE_ID, QUEUE_PATTERN
from .bodies import MEDIA, may_be_empty
from .problems import Problem, status_name
from .routes import Route

REF: Final = "#/components/schemas/{name}"
ALWAYS: Final = (400, 404, 405, 408, 413, 415, 421, 422, 429, 431, 500, 503)
"""Refusals that any route may answer."""
GUARDED: Final = (401, 403)
"""Those of routes that need a token."""
NAMES: Final = {
    "queue": ("The queue.", {"type": "string", "pattern": f"^{QUEUE_PATTERN}$"}),
    "id": ("The job's id.", {"type": "string", "pattern": f"^{ID_PATTERN}$"}),
    "schedule": (
        "The schedule's id.",
        {"type": "string", "pattern": f"^{ID_PATTERN}$", "maxLength": LONGEST_SCHEDULE_ID},
    ),
}
"""What parameters of paths are, and what they look like."""
TEXT: Final = ("", {"type": "string"})


def document(routes: Iterable[Route]) -> dict[str, Any]:
    table = [route for route in routes if route.tag != "hidden"]
    types = {kind for route in table for kind in (route.body, route.answer) if kind not in (None, bytes)}
    ordered = sorted(types, key=str)
    schemas, components = msgspec.json.schema_components([*ordered, Problem], ref_template=REF)
    schema_of = dict(zip(ordered, schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ropeway",
            "version": __version__,
            "description": "A broker of jobs. Errors are problem details (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`ropeway tokens create` makes one."}
            },
        },
    }


def _operation(route: Route, schema_of: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    refusals = sorted({*ALWAYS, *(GUARDED if route.right else ()), *((409,) if route.method != "GET" else ())})
    return {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.tag],
        **({"description": f"Needs the right to {' or '.join(route.right)}."} if route.right else {}),
        "security": [{"token": []}] if route.right else [],
        **({"parameters": found} if (found := _parameters(route, components)) else {}),
        **({"requestBody": _body(route, schema_of)} if route.body is not None else {}),
        "responses": {**_answers(route, schema_of), **{str(status): _problem(status) for status in refusals}},
    }


def _parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "description": meaning, "schema": schema}
        for name in re.findall(r"{(\w+)}", route.path)
        for meaning, schema in [NAMES.get(name, TEXT)]
    ]
    if route.query is not None:
        [_], own = msgspec.json.schema_components([route.query], ref_template=REF)
        described = own.pop(route.query.__name__)
        components |= own
        found += (
            {"name": name, "in": "query", "required": name in described.get("required", ()), "schema": schema}
            for name, schema in described["properties"].items()
        )
    return found


def _body(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    schema = {"type": "array"} if route.body is bytes else schema_of[route.body]
    return {
        "required": not may_be_empty(route.body),
        "content": {media: {"schema": schema} for media in MEDIA.values()},
    }


def _answers(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    if route.answer is None:
        return {"204": {"description": "Done."}}
    media = MEDIA.values() if route.media == "application/json" else [route.media]
    content = {each: {"schema": schema_of[route.answer]} for each in media}
    statuses = {200, route.status}
    return {str(status): {"description": status_name(status), "content": content} for status in sorted(statuses)}


def _problem(status: int) -> dict[str, Any]:
    schema = {"$ref": REF.format(name="Problem")}
    return {
        "description": status_name(status),
        "content": {"application/problem+json": {"schema": schema}},
    }


def _operation_id(route: Route) -> str:
    words = re.sub(r"[{}]", "", route.path).strip("/").replace(".json", "").split("/")
    return "_".join([route.method.lower(), *(word for word in words if word != "v1")])
