"""Cells that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ropeway.cli.cells import cut, wrap


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


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a few words", ["a few", "words"]),
        ("abcde fghij", ["abcde", "fghij"]),
        ("abcdefgh", ["abcde", "fgh"]),
        ("one two three four", ["one", "two", "thre…"]),
        ("日本語 日本", ["日本", "語", "日本"]),
    ],
)
def test_lines_end_between_words_where_they_can(text: str, lines: list[str]):
    assert wrap(text, 5, 3) == lines


@given(st.text(), st.integers(2, 20), st.integers(1, 5))
def test_wrapped_lines_fit(text: str, width: int, most: int):
    lines = wrap(text, width, most)

    assert 1 <= len(lines) <= most
    assert max(map(cell_len, lines)) <= width
