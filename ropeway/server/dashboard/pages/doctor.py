"""Doctor: what `ropeway doctor` says, of the queues that the visitor reaches."""

from __future__ import annotations

from typing import Final, NamedTuple

from starlette.responses import Response

from ....client.workers import known_queues
from ....job.names import is_queue_name
from ....store.inspection import Finding, Level
from ..visits import Visit, page
from .jobs import MOST_QUEUES

ORDER: Final[tuple[Level, ...]] = ("problem", "warning", "ok")


class Told(NamedTuple):
    finding: Finding
    queue: str
    """The queue that it is about; "" for the store."""


async def show_findings(visit: Visit) -> Response:
    summaries = visit.dashboard.summaries
    # What a store says of itself, such as where it is, is for those who may see all of it.
    told = [Told(each, "") for each in await summaries.store_findings()] if visit.principal.queues is None else []
    known = await known_queues(visit.store, await summaries.workers())
    names = [name for name in known if is_queue_name(name) and visit.principal.reaches(name)]
    for name in names[:MOST_QUEUES]:
        told += (Told(each, name) for each in await summaries.findings(visit.broker.queue(name)))
    return visit.page(
        "doctor.html",
        section="Doctor",
        title="Doctor",
        live=f"{visit.root}/live",
        levels={level: [each for each in told if each.finding.level == level] for level in ORDER},
        left_out=max(0, len(names) - MOST_QUEUES),
    )


ROUTES: Final = (page("GET", "/doctor", show_findings, "What is wrong, and what to do about it."),)
