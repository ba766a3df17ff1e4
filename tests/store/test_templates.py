from __future__ import annotations

import pytest

from ropeway.store.templates import fill


def test_names_become_values():
    assert fill("LIMIT {{BATCH}}, '{{STATE}}'", {"BATCH": 1_000, "STATE": "waiting"}) == "LIMIT 1000, 'waiting'"


def test_other_braces_stay():
    assert fill("{ { 1 } } {x} '{{{}}}'", {}) == "{ { 1 } } {x} '{{{}}}'"


def test_a_name_without_a_value_is_an_error():
    with pytest.raises(LookupError, match=r"\{\{BATCHES\}\}"):
        fill("{{BATCHES}}", {"BATCH": 1})
