"""Values of annotations, as JSON and back."""

from __future__ import annotations

import enum
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from ropeway.errors import InvalidPayload
from ropeway.job.codec import decode, encode
from ropeway.job.shape import Shape


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Row(TypedDict, total=False):
    id: int
    tags: set[str]


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    good: bool


class Address(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    street: str
    since: date
    zip_code: str = pydantic.Field(alias="zipCode", default="")


class Person(pydantic.BaseModel):
    name: str
    addresses: list[Address] = []

    @pydantic.computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def initial(self) -> str:
        return self.name[0]


ADDRESS = Address(street="Main", since=date(2020, 1, 2), zipCode="123")
WHEN = datetime(2024, 5, 6, 7, 8, 9, 10, UTC)
ID = UUID("12345678-1234-5678-1234-567812345678")

VALUES: list[tuple[Any, Any]] = [
    (str, "é"),
    (int, 2**70),
    (float, 1.5),
    (bool, True),
    (None, None),
    (bytes, b"\x00\xff"),
    (datetime, WHEN),
    (date, date(2024, 5, 6)),
    (time, time(7, 8)),
    (timedelta, timedelta(days=1, microseconds=5)),
    (UUID, ID),
    (Decimal, Decimal("1.10")),
    (Color, Color.RED),
    (Level, Level.LOW),
    (Literal["a", "b"], "b"),
    (int | str | None, "x"),
    (Optional[datetime], None),  # noqa: UP045 - as people write it
    (Node, Node("a", [Node("b")])),
    (Point, Point(1)),
    (Row, {"id": 1, "tags": {"a", "b"}}),
    (Cat | Dog, Dog(True)),
    (list[Node], [Node("a")]),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2)),
    (set[UUID], {ID}),
    (frozenset[int], frozenset({1})),
    (dict[int, Color], {1: Color.BLUE}),
    (dict[UUID, list[date]], {ID: [date(2024, 1, 1)]}),
    (Mapping[str, int], {"a": 1}),
    (Sequence[float], [1.5]),
    (dict[str, Any], {"a": [1, None, {"b": 1.5}]}),
    (dict[str, object], {"a": 1}),
    (Annotated[int, msgspec.Meta(gt=0)], 1),
    (Address, ADDRESS),
    (Person, Person(name="Ada", addresses=[ADDRESS])),
    (list[Person] | None, [Person(name="Ada")]),
    (dict[str, Person], {"a": Person(name="Ada")}),
]


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=[str(annotation) for annotation, _ in VALUES])
def test_a_value_comes_back_as_it_was(annotation: Any, value: Any):
    shape: Shape[Any] = Shape(annotation)
    text = encode(shape.dump(value, "data"))
    for back in (shape.load(decode(text)), shape.decoder()(text)):
        assert back == value
        assert type(back) is type(value)


@pytest.mark.parametrize("annotation", [Any, object])
def test_what_has_no_type_goes_through_untouched(annotation: Any):
    shape: Shape[Any] = Shape(annotation)
    value = {1, 2}
    assert shape.dump(value, "data") is value
    assert shape.load(value) is value


@pytest.mark.parametrize(
    "annotation",
    [complex, Iterable[int], Callable[[int], int], list[type], datetime | str, Address | Person, dict[str, range]],
    ids=str,
)
def test_a_type_that_json_cannot_hold_is_refused(annotation: Any):
    with pytest.raises(TypeError):
        Shape(annotation)


def test_a_value_that_cannot_be_written_names_what_it_was_for():
    with pytest.raises(InvalidPayload, match="result cannot be stored as JSON") as refused:
        Shape[Any](list[int]).dump([object()], "result")
    assert refused.value.what == "result"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_not_turned_into_nothing(value: float):
    with pytest.raises(InvalidPayload, match=r"\$\[0\] is (nan|inf)"):
        encode(Shape[Any](list[float | None]).dump([value], "data"))


def test_a_model_that_does_not_fit_is_an_error_of_the_value():
    with pytest.raises(msgspec.ValidationError, match="street"):
        Shape(list[Address]).load([{"since": "2020-01-02"}])


def test_pydantic_is_not_imported_without_need():
    program = "import sys, ropeway; assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
