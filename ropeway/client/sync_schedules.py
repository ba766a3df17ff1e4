"""The sync twin of `Schedules`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ..job.codec import Json
from .portal import run
from .schedule import Schedule
from .sync_handle import SyncJobHandle

if TYPE_CHECKING:
    from .schedules import PutOptions, Schedules


class SyncSchedules:
    """The twin of `Schedules`: the same calls, each blocking until it is answered."""

    __slots__ = ("_schedules",)

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules

    def __repr__(self) -> str:
        return f"<Sync{repr(self._schedules)[1:]}"

    # Written by tools/twins.py: do not edit

    def put(self, schedule: str, /, name: str, data: Json = None, **given: Unpack[PutOptions]) -> Schedule:
        """Creates a schedule, or changes the one with this id: the same as `queue.schedule`."""
        return run(self._schedules.put(schedule, name, data, **given))

    def declare(self) -> None:
        """Stores the schedules that decorators of the queue's tasks give, under the names of the tasks."""
        run(self._schedules.declare())

    def list(self) -> list[Schedule]:
        """All schedules of the queue, by id. Those that cannot be read are left out, and named in the log."""
        return run(self._schedules.list())

    def get(self, id: str) -> Schedule | None:
        """A schedule by its id; None if it does not exist."""
        return run(self._schedules.get(id))

    def pause(self, id: str) -> Schedule:
        """Stops its ticks until it is resumed. Jobs that it made go on."""
        return run(self._schedules.pause(id))

    def resume(self, id: str) -> Schedule:
        """Ends its pause. Ticks in between are not made up for."""
        return run(self._schedules.resume(id))

    def run(self, id: str) -> SyncJobHandle:
        """Makes a job of it now, beside its ticks, also if it is paused; `overlap` holds as for a tick."""
        return run(self._schedules.run(id)).sync

    def remove(self, id: str) -> bool:
        """Removes it with the jobs of its last ticks that have not begun; False if it does not exist."""
        return run(self._schedules.remove(id))

    # End of what tools/twins.py writes
