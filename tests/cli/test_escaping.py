"""Foreign text in a terminal."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from ropeway.cli.escaping import one_line, printable


def test_nothing_that_acts_or_hides_is_left():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))

    shown = printable(everything)

    assert {letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")} == {"\n"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("grüße → 日本 🚡", "grüße → 日本 🚡"),
        ("a\u00a0b", "a\u00a0b"),
        ("a\nb", "a\\nb"),
        ("a\tb", "a    b"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eevil", "\\u202eevil"),
    ],
)
def test_the_rest_is_as_it_was(text: str, line: str):
    assert one_line(text) == line
