import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.errors import InvalidInput, InvalidPayload, PayloadTooLarge
from ropeway.job.codec import DEPTH_LIMIT, DIGIT_LIMIT, SIZE_LIMIT, decode, encode

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    YES = "yes"


class Markup(str):
    __slots__ = ()


class Metres(float):
    pass


class Count(int):
    pass


@dataclass
class Point:
    x: int


class Row(msgspec.Struct):
    x: int


def nested(depth):
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def exactly(value):
    """Tells -0.0 from 0, 1 from 1.0 and True from 1."""
    return json.dumps(value)


@given(JSON)
def test_what_goes_in_comes_out(value):
    assert exactly(decode(encode(value))) == exactly(value)


@pytest.mark.parametrize(
    "value",
    [
        *(2**53 + 1, 2**63, 2**64, -(2**64), 10**DIGIT_LIMIT - 1, -(10**DIGIT_LIMIT) + 1, 0.1 + 0.2, -0.0, 5e-324),
        *("a\x00b", "\u2028\u2029", "🚡", "\u202eabc", "", {"": {"": 0}}, {"\u00e9": 1, "e\u0301": 2}, [], {}),
        *(True, False, None, [None], [[], {}]),
    ],
)
def test_the_edges_of_json_come_out_as_they_went_in(value):
    assert exactly(decode(encode(value))) == exactly(value)


def test_a_tuple_becomes_a_list():
    assert decode(encode({"a": (1, (2,))})) == {"a": [1, [2]]}


@pytest.mark.parametrize(("value", "text"), [(Number.ONE, "1"), (Word.YES, '"yes"'), ([Number.ONE], "[1]")])
def test_an_enum_that_is_a_number_or_a_text_is_stored_as_such(value, text):
    assert encode(value) == text


@pytest.mark.parametrize(
    "value",
    [
        *({1, 2}, frozenset(), b"bytes", bytearray(), memoryview(b""), object(), len, int, 1j, iter([])),
        *(datetime.now(UTC), date(2026, 1, 1), Decimal(1), UUID(int=1), Colour.RED, Point(1), Row(1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_does_not_have_is_refused_by_its_place(value):
    with pytest.raises(InvalidPayload) as caught:
        encode({"a": [0, 1, {"b": value}]})

    assert caught.value.path == "$.a[2].b"
    assert type(value).__qualname__ in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, InvalidInput)


@pytest.mark.parametrize("value", [Markup("<b>"), Metres(1.5), Count(3)], ids=lambda value: type(value).__name__)
def test_a_text_or_number_of_a_type_of_its_own_is_refused_by_its_place(value):
    with pytest.raises(InvalidPayload) as caught:
        encode({"a": [value]})

    assert caught.value.path == "$.a[0]"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_is_not_a_number(value):
    with pytest.raises(InvalidPayload, match="JSON does not have") as caught:
        encode([value])

    assert caught.value.path == "$[0]"


@pytest.mark.parametrize("key", [1, 1.5, None, True, (1,), b"a", Colour.RED])
def test_a_key_is_text(key):
    with pytest.raises(InvalidPayload, match="keys are text"):
        encode({"a": {key: 1}})


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, ["a", {"b": "x\ud83d"}]])
def test_half_of_a_surrogate_pair_is_refused(value):
    with pytest.raises(InvalidPayload, match="surrogate"):
        encode(value)


@pytest.mark.parametrize("value", [10**DIGIT_LIMIT, -(10**DIGIT_LIMIT), 10**5_000], ids=["1001", "minus", "5001"])
def test_a_number_of_too_many_digits_is_refused(value):
    with pytest.raises(InvalidPayload, match="digits"):
        encode({"n": value})


def test_a_long_run_of_digits_in_a_text_is_no_number():
    assert decode(encode("9" * 5_000)) == "9" * 5_000


def test_deep_nesting_is_refused():
    assert decode(encode(nested(DEPTH_LIMIT))) == nested(DEPTH_LIMIT)
    with pytest.raises(InvalidPayload, match="deep"):
        encode(nested(DEPTH_LIMIT + 1))


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_very_deep_nesting_is_refused_like_any_other(depth):
    with pytest.raises(InvalidPayload, match="deep"):
        encode(nested(depth))


def test_a_value_inside_itself_is_refused():
    value: list[object] = []
    value.append(value)

    with pytest.raises(InvalidPayload, match="deep"):
        encode(value)


def test_many_brackets_in_a_text_are_no_nesting():
    assert decode(encode("[" * 1_000)) == "[" * 1_000


def test_a_wide_value_is_not_deep():
    assert decode(encode([[]] * 1_000)) == [[]] * 1_000


@pytest.mark.parametrize("letter", ["x", "é", "🚡"])
def test_the_limit_counts_encoded_bytes_exactly(letter):
    size = len(letter.encode())
    text = letter * ((SIZE_LIMIT - 2) // size)
    room = SIZE_LIMIT - len(encode(text).encode())

    assert len(encode(text + "x" * room).encode()) == SIZE_LIMIT
    with pytest.raises(PayloadTooLarge) as caught:
        encode(text + "x" * (room + 1))
    assert (caught.value.size, caught.value.limit) == (SIZE_LIMIT + 1, SIZE_LIMIT)


def test_the_limit_can_be_another():
    assert encode("abc", limit=5) == '"abc"'
    with pytest.raises(PayloadTooLarge, match="5 are allowed"):
        encode("abcd", limit=5)


def test_the_error_says_what_was_given():
    with pytest.raises(InvalidPayload, match=r"^result cannot"):
        encode(object(), "result")


def test_a_dict_that_cannot_be_gone_through_is_refused():
    class Items(dict[str, object]):
        def items(self):
            raise RuntimeError("no items")

    with pytest.raises(InvalidPayload, match=r"\$ is a .*Items that raised RuntimeError"):
        encode(Items(a=object()))


def test_a_value_that_cannot_be_compared_is_refused_by_its_type():
    @dataclass
    class Rate:
        a: int

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no comparison")

        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(InvalidPayload, match=r"\$\.rate is a .*Rate; convert it"):
        encode({"rate": Rate(1)})


def test_the_place_of_a_problem_is_named_in_few_words():
    with pytest.raises(InvalidPayload) as caught:
        encode({"x" * 4_000_000: {"\n" * 4_000: object()}})

    assert len(caught.value.path) <= 200
    assert caught.value.path.isprintable()
    assert "is an object; convert it" in str(caught.value)
