"""Where data does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from ropeway.job.shape import Shape
from ropeway.job.wrong_values import MOST_LISTED, WrongValue, listed, wrong_values


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(min_length=2)
    pets: list[int]


class Struct(msgspec.Struct):
    rows: list[int]


@dataclass
class Data:
    rows: list[int]


class Dictionary(TypedDict):
    rows: list[int]


def found(annotation: Any, value: Any) -> list[WrongValue]:
    with pytest.raises(msgspec.ValidationError) as refused:
        Shape(annotation).load(value)
    return wrong_values(refused.value)


@pytest.mark.parametrize("kind", [Struct, Data, Dictionary])
def test_a_type_says_where(kind: Any):
    assert found(kind, {"rows": [1, "x"]}) == [WrongValue("$.rows[1]", "Expected `int`, got `str`")]
    assert found(kind, {}) == [WrongValue("$", "Object missing required field `rows`")]


def test_a_model_says_every_place_from_the_outside():
    value = {"people": [{"name": "Ann", "pets": []}, {"name": "A", "pets": [1, "x"]}]}
    paths = [each.path for each in found(dict[str, list[Person]], value)]
    assert [path.removeprefix("$[...]") for path in paths] == ["[1].name", "[1].pets[1]"]
    assert [each.path for each in found(Person, {"name": "A", "pets": 1})] == ["$.name", "$.pets"]


def test_all_are_listed_up_to_a_limit():
    many = [WrongValue(f"$[{place}]", "is odd") for place in range(MOST_LISTED + 5)]
    assert listed(many[:2]) == "is odd - at `$[0]`; is odd - at `$[1]`"
    assert listed(many).endswith("; and 5 more")
    assert listed([WrongValue("$", "is odd")]) == "is odd"
