"""The table of routes: no row lacks a rule, and what is derived from it is complete."""

from __future__ import annotations

import re

import pytest

from ropeway.server.command_rules import RULES
from ropeway.server.openapi import document
from ropeway.server.roles import RIGHTS
from ropeway.server.table import ROUTES
from ropeway.store.commands import COMMANDS

OPEN = {"/livez", "/readyz", "/openapi.json"}
"""What anyone may ask for."""


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_has_a_rule(route):
    assert set(route.right) <= set(RIGHTS)
    assert bool(route.right) or route.path in OPEN, "anyone could call it"
    assert ("{queue}" in route.path) == (route.scope == "queue"), "nobody checks which queue it is about"
    if route.scope == "named":
        assert route.queues is not None or route.path == "/v1/do", "nobody checks which queues the body names"
    if route.method != "GET" and "operate" in route.right:
        assert route.audited, "nobody would learn who did it"
    assert re.fullmatch(r"[A-Z].*\.", route.summary)


def test_every_command_has_a_rule():
    assert set(RULES) == set(COMMANDS)


def test_every_route_is_described():
    described = document(ROUTES)

    assert described["openapi"].startswith("3.1")
    assert {(method.upper(), path) for path, methods in described["paths"].items() for method in methods} == {
        (route.method, route.path) for route in ROUTES
    }
    ids = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))
