"""Cells that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ropeway.cli.cells import cut


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 4, "日…"),
        ("日本語", 5, "日本…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_what_is_too_long_is_cut_and_says_so(text: str, width: int, fitted: str):
    assert cut(text, width) == fitted


@given(st.text(), st.integers(0, 20), st.sampled_from(["…", ".."]))
def test_cut_text_fits(text: str, width: int, ellipsis: str):
    assert cell_len(cut(text, width, ellipsis)) <= width
