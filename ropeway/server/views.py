"""Jobs and schedules as the API shows them: with the words of a submission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..client.schedule import Schedule
from ..client.snapshot import Snapshot

WORDS: Final = {"name": "type", "data": "payload", "attempts": "max_attempts"}
"""What the fields of a job are called here."""


def _renamed(name: str, struct: type[msgspec.Struct], doc: str) -> Any:
    """The same fields under the words of this API; a subclass would keep the names of those that it inherits."""
    fields = [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(struct)
    ]
    return msgspec.defstruct(name, fields, frozen=True, kw_only=True, rename=WORDS, namespace={"__doc__": doc})


if TYPE_CHECKING:

    class JobView(Snapshot, frozen=True): ...

    class ScheduleView(Schedule, frozen=True): ...

else:
    JobView = _renamed("JobView", Snapshot, "A job at the moment of reading.")
    ScheduleView = _renamed("ScheduleView", Schedule, "A schedule at the moment of reading.")


def view_of(snapshot: Snapshot) -> JobView:
    return JobView(**{field: getattr(snapshot, field) for field in Snapshot.__struct_fields__})


def schedule_view(schedule: Schedule) -> ScheduleView:
    return ScheduleView(**{field: getattr(schedule, field) for field in Schedule.__struct_fields__})
