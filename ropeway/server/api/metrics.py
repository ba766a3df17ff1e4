"""Numbers for Prometheus."""

from __future__ import annotations

from typing import Final

from ...metrics import CONTENT_TYPE, families
from ...metrics.page import Page
from ...metrics.process import put_process
from ..routes import Call, Reply, Route


async def metrics(call: Call) -> Reply:
    page, admission = Page(), call.broker.admission
    await call.broker.exporter.put(page, call.principal.reaches)
    page.put(families.INSIDE, admission.inside)
    page.put(families.WAITING, admission.waiting)
    page.put(families.REFUSED, admission.refused)
    put_process(page)
    return Reply(page.text().encode())


ROUTES: Final = (
    Route(
        "GET",
        "/metrics",
        metrics,
        ("read",),
        "Numbers of all queues for Prometheus.",
        "filtered",
        answer=str,
        # Never refused for load: it is then that it is needed, and pages at once share one read.
        kind="probe",
        media=CONTENT_TYPE,
        tag="server",
    ),
)
