"""Dedupe keys: which are given, what hash the data has, and what is refused."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway import Dedupe
from ropeway.errors import InvalidDuration, InvalidInput, InvalidName, InvalidOption
from ropeway.job.codec import encode
from ropeway.job.dedupe import ACTIONS, LONGEST_KEY, MODES, DedupeRule
from ropeway.job.states import STATES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


def key_of(name: str, data: Any) -> str:
    return Dedupe.by_data().rule(name, encode(data, "data", 10_000)).key


def test_a_key_is_held_until_the_job_is_final_unless_told_otherwise():
    assert Dedupe("user:7").rule("send", "null") == DedupeRule("user:7", "until-final", 0)


def test_a_ttl_is_a_duration():
    assert Dedupe("k", "throttle", ttl="5 minutes").rule("send", "null") == DedupeRule("k", "throttle", 300_000)
    assert Dedupe("k", mode="debounce", ttl=0.5).rule("send", "null").ttl == 500


@given(JSON)
def test_the_order_of_keys_in_the_data_does_not_matter(data: Any):
    assert key_of("send", data) == key_of("send", _turned(data))


@given(JSON, JSON)
def test_other_data_has_another_key(one: Any, other: Any):
    assert (key_of("send", one) == key_of("send", other)) == (
        msgspec.json.encode(one) == msgspec.json.encode(_like(other, one))
    )


def test_the_name_is_part_of_the_key_of_data():
    assert key_of("send", {"a": 1}) != key_of("fetch", {"a": 1})
    assert key_of('a",1', 1) != key_of("a", 1)


def test_a_key_by_data_has_the_same_length_for_any_data():
    assert len(key_of("send", "x" * 5_000)) == len(key_of("send", 1)) <= LONGEST_KEY


def test_its_text_shows_key_and_mode():
    assert repr(Dedupe("k")) == "<Dedupe 'k' until-final>"
    assert repr(Dedupe.by_data("throttle", ttl=1)) == "<Dedupe by data throttle>"


def test_a_key_that_is_an_enum_is_its_text():
    class Keys(str, Enum):  # noqa: UP042 - its str() is another text
        USER = "user:7"

    rule = Dedupe(Keys.USER).rule("send", "null")

    assert (rule.key, type(rule.key)) == ("user:7", str)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_says_what_happens_in_every_state(mode: Any):
    assert set(ACTIONS[mode]) == set(STATES)


BAD: list[tuple[tuple[Any, ...], dict[str, Any], type[InvalidInput], str]] = [
    (("",), {}, InvalidName, "dedupe key"),
    ((None,), {}, InvalidName, "dedupe key"),
    ((5,), {}, InvalidName, "dedupe key"),
    (("x" * 256,), {}, InvalidName, "1 to 255"),
    (("a\nb",), {}, InvalidName, "control characters"),
    (("\ud800",), {}, InvalidName, "dedupe key"),
    (("k", "forever"), {}, InvalidOption, "mode"),
    (("k", None), {}, InvalidOption, "mode"),
    (("k", "throttle"), {}, InvalidOption, "ttl.*is missing"),
    (("k", "debounce"), {}, InvalidOption, "ttl.*is missing"),
    (("k",), {"ttl": 5}, InvalidOption, "ttl.*throttle and debounce"),
    (("k", "keep-last"), {"ttl": 5}, InvalidOption, "keep-last.*has none"),
    (("k", "supersede"), {"ttl": 0}, InvalidOption, "supersede.*has none"),
    (("k", "throttle"), {"ttl": 0}, InvalidOption, "cannot be 0"),
    (("k", "throttle"), {"ttl": -1}, InvalidDuration, "ttl"),
    (("k", "throttle"), {"ttl": "soon"}, InvalidDuration, "ttl"),
]


@pytest.mark.parametrize(("args", "kwargs", "error", "message"), BAD)
def test_what_makes_no_sense_is_refused(
    args: tuple[Any, ...], kwargs: dict[str, Any], error: type[InvalidInput], message: str
):
    with pytest.raises(error, match=message):
        Dedupe(*args, **kwargs)


def _turned(data: Any) -> Any:
    """The same data with the keys of its objects the other way round."""
    if isinstance(data, dict):
        return {key: _turned(value) for key, value in reversed(data.items())}
    return [_turned(item) for item in data] if isinstance(data, list) else data


def _like(data: Any, pattern: Any) -> Any:
    """The same data with the keys of its objects in the order of another."""
    if isinstance(data, dict) and isinstance(pattern, dict):
        ordered = [*(key for key in pattern if key in data), *(key for key in data if key not in pattern)]
        return {key: _like(data[key], pattern.get(key)) for key in ordered}
    if isinstance(data, list) and isinstance(pattern, list) and len(data) == len(pattern):
        return [_like(one, other) for one, other in zip(data, pattern, strict=True)]
    return data
