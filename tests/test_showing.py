from __future__ import annotations

import pytest

from ropeway.errors import InvalidInput, InvalidMove, InvalidOption, InvalidPayload, JobFailed, StoreUnavailable
from ropeway.job.failure import REASON_LIMIT
from ropeway.showing import LONGEST_MESSAGE, LONGEST_VALUE, error_text, kind_of, on_one_line, shortened, shown

from .odd import ODD, Mute, Text


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_any_value_is_shown_on_one_short_line(value: object):
    assert len(shown(value)) <= LONGEST_VALUE
    assert shown(value).isprintable()


@pytest.mark.parametrize("value", [5, -1.5, "a", "it's", [1, "a"], {"a": 1}, None, True, (1,)])
def test_a_plain_value_is_shown_as_its_repr(value: object):
    assert shown(value) == repr(value)


def test_of_long_text_both_ends_are_shown_in_quotes():
    assert shown("a" * 100_000 + "b") == f"'{'a' * 78}…{'a' * 38}b'"


def test_what_cannot_be_shown_is_named():
    assert "Mute" in shown(Mute())
    assert shown(10**5000) == "<int that cannot be shown>"
    assert shown(Text("a\nb")) == "'a\\nb'"


@pytest.mark.parametrize(
    ("value", "kind"), [(5, "an int"), (object(), "an object"), ("", "a str"), (Mute(), "a Mute"), ({}, "a dict")]
)
def test_a_type_is_named_with_its_article(value: object, kind: str):
    assert kind_of(value) == kind


def test_text_is_cut_in_the_middle():
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijkl", 10) == "abcdef…jkl"


def test_what_would_move_the_cursor_is_escaped():
    assert on_one_line("a\x1b[2J\n\u2028\ud800é") == "a\\x1b[2J\\n\\u2028\\ud800é"


def test_an_error_that_cannot_say_what_is_wrong_is_named():
    class Wordless(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(Wordless()) == "Wordless"
    assert error_text(ValueError("a\n  b")) == "a b"
    assert error_text(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("x" * 4_000_000),
        InvalidOption("x" * 4_000_000, "y" * 4_000_000),
        InvalidPayload("data", "$", "y" * 4_000_000),
        StoreUnavailable("sqlite:///" + "x" * 4_000_000, "gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_message_of_an_error_is_bounded(error: Exception):
    assert len(str(error)) <= LONGEST_MESSAGE


def test_the_whole_reason_of_a_failed_job_is_in_its_error():
    reason = "x" * REASON_LIMIT

    assert reason in str(JobFailed("q" * 128, "i" * 255, reason))


def test_states_that_allow_a_move_are_told_as_people_do():
    error = InvalidMove("emails", "a", "signal", "failed", ("waiting", "delayed", "active"))

    assert str(error).endswith("is for jobs that are waiting, delayed or active")
