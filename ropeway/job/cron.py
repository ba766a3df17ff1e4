"""Cron expressions: instants at which they fire, in a time zone."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from ..errors import InvalidOption
from ..showing import shown
from .instants import Instant, moment_of

LONGEST_CRON: Final = 256
_ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FORM: Final = (
    "use five fields (minute, hour, day of month, month, day of week), six with seconds first, "
    "or one of " + ", ".join(_ALIASES)
)


def check_cron(given: object) -> str:
    """The expression as it is stored, without superfluous spaces; refuses one that never fires."""
    if not isinstance(given, str) or not given.isascii() or len(given) > LONGEST_CRON:
        raise InvalidOption("cron", f"cannot be {shown(given)}: {_FORM}")
    expression = " ".join(given.split())
    try:
        next(_simulated(expression, datetime(2024, 1, 1, tzinfo=UTC)))
    except (CronSimError, ValueError) as wrong:
        raise InvalidOption("cron", f"cannot be {shown(given)} ({str(wrong).lower()}): {_FORM}") from None
    except StopIteration:
        raise InvalidOption("cron", f"cannot be {shown(given)}: it never fires") from None
    return expression


def check_zone(given: object) -> str:
    if not isinstance(given, str):
        raise InvalidOption("tz", f'cannot be {shown(given)}: use the name of a zone, such as "Europe/Berlin"')
    try:
        zone_of(given)
    except (KeyError, ValueError, OSError):
        zones = available_timezones()
        if not zones:
            raise InvalidOption(
                "tz", "needs a time zone database, and this machine has none: pip install tzdata"
            ) from None
        as_written = {zone.lower(): zone for zone in zones}
        near = [as_written[zone] for zone in difflib.get_close_matches(given[:64].lower(), as_written, n=1, cutoff=0.5)]
        hint = f"did you mean {near[0]!r}?" if near else 'use a name such as "Europe/Berlin"'
        raise InvalidOption("tz", f"cannot be {shown(given)}: there is no such zone; {hint}") from None
    return given


@lru_cache(maxsize=128)
def zone_of(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)


def cron_instants(expression: str, tz: str, after: Instant) -> Iterator[Instant]:
    """The instants after one, in order.

    A time that a change of clocks skips fires at the first instant after the gap; one that comes twice fires once,
    unless minutes or hours are a star.
    """
    start = moment_of(after)
    with suppress(OverflowError):  # The calendar ends with the year 9999.
        for moment in _simulated(expression, start.astimezone(zone_of(tz))):
            instant = round(moment.timestamp() * 1000)
            # While a local time is repeated, the simulation begins again at its first pass.
            if instant > after:
                yield instant


def cron_instants_back(expression: str, tz: str, before: Instant) -> Iterator[Instant]:
    """The instants up to and including one, the newest first."""
    start = moment_of(before + 1).astimezone(zone_of(tz))
    simulation = _simulated(expression, start, reverse=True)
    if simulation.fixup_tz is not None and start.fold:
        # While a local time is repeated, all ticks of both passes were in the first one.
        simulation.dt += _repeated(start)
    for found in simulation:
        instant = round(found.timestamp() * 1000)
        if instant <= before:
            yield instant


def explain_cron(expression: str) -> str:
    """The expression in plain words, such as "At 09:00 every day"."""
    return CronSim(_ALIASES.get(expression, expression), datetime(2024, 1, 1, tzinfo=UTC)).explain()


def _simulated(expression: str, start: datetime, *, reverse: bool = False) -> _Simulation:
    fields = _ALIASES.get(expression, expression)
    simulation = _Simulation(fields, start, reverse=reverse)
    _, minute, hour, *_ = simulation.parts
    if simulation.dt.tzinfo not in (None, UTC) and not minute.startswith("*") and not hour.startswith("*"):
        # As cronsim does by itself only for five fields: a daily job with seconds runs once a day, too.
        simulation.fixup_tz = simulation.dt.tzinfo
        simulation.dt = simulation.dt.replace(tzinfo=None)
    return simulation


def _repeated(moment: datetime) -> timedelta:
    """How much of the local time is repeated, at a moment in the second pass."""
    first, second = moment.replace(fold=0).utcoffset(), moment.utcoffset()
    assert first is not None
    assert second is not None
    return first - second


class _Simulation(CronSim):
    """Where clocks change by half an hour, it goes to the beginning of an hour (or its end, in reverse), too.

    cronsim goes from hour to hour in steps of an hour, and so from a change on past the first half of each.
    """

    def advance_hour(self) -> bool:
        return self._to_hour(0, 0)

    def reverse_hour(self) -> bool:
        return self._to_hour(59, 59)

    def _to_hour(self, minute: int, second: int) -> bool:
        if self.dt.hour in self.hours:
            return False
        last = 23 if minute else 0
        self.dt = self.dt.replace(minute=minute, second=second)
        while self.dt.hour not in self.hours:
            self.tick(seconds=3600)
            if self.dt.minute != minute:
                self._shift(timedelta(minutes=minute - self.dt.minute))
            if self.dt.hour == last:
                # Its day and month are to be looked at.
                break
        return True

    def _shift(self, by: timedelta) -> None:
        """Moves within the hour, if that is the same hour all the way."""
        zone = self.dt.tzinfo
        shifted = (self.dt.astimezone(UTC) + by).astimezone(zone)
        if shifted.hour == self.dt.hour:
            self.dt = shifted
