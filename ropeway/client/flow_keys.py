"""Dedupe keys in flows: only the first job of a flow may have one."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidOption
from ..job.dedupe import IN_FLOWS
from ..job.record import NewJob


def refuse_keys(jobs: Sequence[NewJob]) -> None:
    """Refuses keys that could leave a part of a flow without the rest."""
    keyed = [(job, job.extras.dedupe) for job in jobs if job.extras is not None and job.extras.dedupe is not None]
    roots = [job for job in jobs if not job.parents] if keyed else []
    for job, rule in keyed:
        if job.parents:
            raise InvalidOption("dedupe", f"is for the first job of a flow, and other jobs wait for {job.name!r}")
        if job.children and rule.mode not in IN_FLOWS:
            raise InvalidOption("dedupe", f"of a job with children has the mode {' or '.join(IN_FLOWS)}")
        if job.children and len(roots) > 1 and any(len(each.parents) > 1 for each in jobs):
            raise InvalidOption("dedupe", "is for flows that share no jobs: add them one by one")
