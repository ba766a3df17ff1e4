"""The overview: what happens in all queues now."""

from __future__ import annotations

from collections import Counter
from typing import Final

from starlette.responses import Response

from ....job.instants import instant_of
from ....job.states import State
from ..charts import throughput, waits
from ..summaries import Span, together
from ..visits import Visit, page

MOST_QUEUES: Final = 50
"""Queues whose numbers are read for the overview."""
MOST_FAILURES: Final = 8


def span_of(visit: Visit) -> Span:
    return "day" if visit.arg("span") == "day" else "hour"


async def overview(visit: Visit) -> Response:
    summaries = visit.dashboard.summaries
    span = span_of(visit)
    queues = await visit.queues()
    shown = queues[:MOST_QUEUES]
    found = [await summaries.of(queue) for queue in shown]
    buckets = together([await summaries.buckets(queue, span) for queue in shown])
    workers = sorted(
        (each for each in await summaries.workers() if any(visit.principal.reaches(name) for name in each.queues)),
        key=lambda worker: (worker.name, worker.started_at),
    )
    counts: Counter[State] = Counter()
    for summary in found:
        counts.update(summary.counts)
    failures = sorted(
        (job for summary in found for job in summary.failures),
        key=lambda job: instant_of(job.snapshot.finished_at or job.snapshot.created_at),
        reverse=True,
    )
    return visit.page(
        "overview.html",
        section="Overview",
        title="Overview",
        live=f"{visit.root}/live",
        span=span,
        now=await summaries.now(),
        queues=found,
        more=len(queues) - len(shown),
        counts=counts,
        charts=[throughput(buckets), waits(buckets)] if buckets else [],
        completed=sum(bucket.completed for bucket in buckets),
        failed=sum(bucket.failed for bucket in buckets),
        failures=failures[:MOST_FAILURES],
        late=[(summary.name, id, at) for summary in found for id, at in summary.late],
        overdue=[(summary.name, summary.overdue) for summary in found if summary.overdue is not None],
        workers=workers,
        served={name for worker in workers for name in worker.queues},
    )


ROUTES: Final = (page("GET", "/overview", overview, "What happens in all queues now."),)
