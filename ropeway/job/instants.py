"""Instants are whole milliseconds since 1970 in UTC, on the store's clock.

Bounds in these types are checked when a value is decoded, as one that came over a network.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeAlias, overload

import msgspec

from ..errors import InvalidDuration

LAST_INSTANT: Final = 253_402_300_799_999
"""The end of the year 9999: later than any job can be due, and exact as a double."""
Instant: TypeAlias = Annotated[int, msgspec.Meta(ge=-LAST_INSTANT, le=LAST_INSTANT)]
Milliseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LAST_INSTANT)]

_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of(moment: datetime, option: str | None = None) -> Instant:
    if not isinstance(moment, datetime):
        raise InvalidDuration(moment, "is not an instant: use a datetime with a time zone", option)
    try:
        has_zone = moment.utcoffset() is not None
    except Exception as error:
        raise InvalidDuration(moment, "has a time zone that cannot be asked for its offset", option) from error
    if not has_zone:
        raise InvalidDuration(moment, "has no time zone: use datetime.now(UTC) or a zone of your own", option)
    return round(moment.timestamp() * 1000)


def due_instant_of(moment: datetime, option: str | None = None) -> Instant:
    """As `instant_of`, within what stores can hold: one before 1970 is due now, as any that has passed."""
    return min(max(instant_of(moment, option), 0), LAST_INSTANT)


@overload
def moment_of(instant: Instant) -> datetime: ...
@overload
def moment_of(instant: Instant | None) -> datetime | None: ...
def moment_of(instant: Instant | None) -> datetime | None:
    return None if instant is None else _BEGINNING + timedelta(milliseconds=instant)
