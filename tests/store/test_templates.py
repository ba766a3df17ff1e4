from __future__ import annotations

import pytest

from ropeway.store.templates import fill


def test_each_placeholder_becomes_its_value():
    assert fill("a {{N}} b {{N}}{{TEXT}}", {"N": 7, "TEXT": "'x'"}) == "a 7 b 7'x'"


def test_a_name_without_a_value_is_an_error():
    with pytest.raises(KeyError, match="MISSING"):
        fill("{{MISSING}}", {"OTHER": 1})


def test_other_braces_stay():
    assert fill("{} {1} {{ x }} {a: {b}}", {}) == "{} {1} {{ x }} {a: {b}}"


def test_a_value_is_not_filled_again():
    assert fill("{{A}}", {"A": "{{B}}"}) == "{{B}}"
