from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.cli.live.texts import number, one_line, percent, rate, seconds, short_worker


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (99_999, "99,999"),
        (100_000, "100k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_234_567, "1.23M"),
        (12_345_678, "12.3M"),
        (999_600_000, "1000M"),
        (2_000_000_000, "2G"),
    ],
)
def test_numbers_are_short(value: float, text: str):
    assert number(value) == text


@given(st.integers(0, 10**12))
def test_a_number_takes_at_most_six_cells(value: int):
    assert len(number(value)) <= 6


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0ms"),
        (0.0124, "12ms"),
        (0.9996, "1.0s"),
        (3.44, "3.4s"),
        (59.96, "1m00s"),
        (125, "2m05s"),
        (12_000, "3h20m"),
        (90_000, "1d01h"),
        (100 * 86_400, "100d"),
    ],
)
def test_times_are_short(value: float | None, text: str):
    assert seconds(value) == text


@given(st.floats(0, 99 * 86_400))
def test_a_time_takes_at_most_six_cells(value: float):
    assert len(seconds(value)) <= 6


@pytest.mark.parametrize(
    ("value", "text"), [(0, "–"), (0.25, "0.2"), (12.34, "12.3"), (123.4, "123"), (10_000, "10,000")]
)
def test_rates_are_short(value: float, text: str):
    assert rate(value) == text


@pytest.mark.parametrize(
    ("progress", "share"),
    [(0, 0.0), (55, 55.0), (100, 100.0), (101, None), (-1, None), (True, None), ("half", None), ({"a": 1}, None)],
)
def test_only_a_number_up_to_a_hundred_is_a_bar(progress: object, share: float | None):
    assert percent(progress) == share


def test_a_worker_without_a_name_is_its_host_and_process():
    assert short_worker("web:4711:a1b2c3") == "web:4711"
    assert short_worker("blue:green") == "blue:green"


@pytest.mark.parametrize(
    "nasty", ["a\x1b[2Jb", "a\rb", "a\nb", "a\x07b", "a\u2028b", "a\u202eb", "a\x9bb", "a\ud800b", "a\0b"]
)
def test_foreign_text_cannot_move_the_cursor(nasty: str):
    shown = one_line(nasty)

    assert shown.isprintable()
    assert (shown[0], shown[-1]) == ("a", "b")


def test_what_cannot_be_encoded_is_replaced():
    assert one_line("ä – … 日本", "ascii") == "? - .. ??"
