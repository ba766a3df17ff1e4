"""Cells that fit."""

from __future__ import annotations

import pytest

from ropeway.cli.tables import cut, width_of


@pytest.mark.parametrize(("text", "width"), [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("…", 1)])
def test_a_width_is_that_of_a_terminal(text: str, width: int):
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("text", "width", "fitted"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 4, "日…"), ("abc", 1, "…")]
)
def test_what_is_too_long_is_cut_and_says_so(text: str, width: int, fitted: str):
    assert cut(text, width) == fitted
