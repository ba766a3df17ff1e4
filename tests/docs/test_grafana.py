"""The dashboard names metrics and labels that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ropeway.metrics.families import SERVER, STORE

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"


def test_every_metric_of_the_dashboard_exists():
    written = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in written["panels"] for target in panel["targets"]]
    queries += [variable["definition"] for variable in written["templating"]["list"] if "definition" in variable]
    named = {name for query in queries for name in re.findall(r"\b(?:ropeway|process)_\w+", query)}

    kinds = {family.name: family.kind for family in (*STORE, *SERVER)}
    there = {f"{name}_bucket" if kind == "histogram" else name for name, kind in kinds.items()}
    assert named
    assert named <= there
    # A label of another name would match nothing.
    assert {label for query in queries for label in re.findall(r"(\w+)=~?\"", query)} == {"queue", "state"}
