"""Values that no call expects: what people pass by mistake, and what a fuzzer would."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any


class Mute:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Talkative:
    def __repr__(self) -> str:
        return "so much to say\n" * 300_000


class Unequal:
    """Cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class Closed:
    """Has no attributes that could be asked for."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"do not ask for {name}")


class Nowhere(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None


class Broken(Nowhere):
    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        raise RuntimeError("no offset")


class Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, -5, 2**31, 2**63, -(2**63), 10**400, 10**5000, -(10**5000)),
    *(0.5, -0.5, math.nan, math.inf, -math.inf, 1e308, Decimal(5), 1j),
    *("", " ", "a", "5", "-5 s", "1 h 1 h", "١ h", "P", "soon", "waiting", "a\nb", "a\x00b", "\ud800", "é" * 300),
    *("x" * 4_000_000, "[" * 100_000, "9" * 10_000, Text("a\nb"), b"a", bytearray(b"a"), b"x" * 1_000_000),
    *(
        [],
        (),
        {},
        set(),
        [1],
        ["a"],
        {"a": 1},
        {1: 2},
        {"x" * 1_000_000: 1},
        range(5),
        iter([1]),
        nested(100_000),
        circle(),
    ),
    *(timedelta(-1), timedelta.max, timedelta.min, date(2030, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
    *(datetime(2030, 1, 1, tzinfo=Nowhere()), datetime(2030, 1, 1, tzinfo=Broken()), datetime(1, 1, 1, tzinfo=UTC)),
    *(object(), object, Mute(), Mute, Talkative(), Unequal(), Closed(), len, lambda: None, Ellipsis),
]
