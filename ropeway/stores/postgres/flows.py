"""Parents and children of new jobs, as `sql/add.sql` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...job.flows import Parent
from ...job.record import NewJob
from .encoding import as_json


def flow_of(jobs: Sequence[NewJob], queues: Mapping[str, int]) -> str:
    """JSON, as `sql/lib/flow_parents.sql` takes it. Positions begin with 1; equal parents are stated once."""
    places = {(job.queue, job.id): place for place, job in enumerate(jobs, 1) if job.children}
    sets: dict[tuple[Parent, ...], int] = {}
    set_of = [sets.setdefault(job.parents, len(sets) + 1) if job.parents else None for job in jobs]
    links = [(place, child) for place, job in enumerate(jobs, 1) for child in dict.fromkeys(job.children)]
    flow = {
        "sets": set_of,
        "are_parents": [bool(job.children) for job in jobs],
        "parents": [as_json(parents).decode() for parents in sets],
        "parents_at": [
            (number, queues[parent.queue], parent.id, places.get((parent.queue, parent.id)))
            for parents, number in sets.items()
            for parent in parents
        ],
        "link_of": [place for place, _ in links],
        "link_queues": [queues[child.queue] for _, child in links],
        "link_ids": [child.id for _, child in links],
        "link_policies": [child.policy for _, child in links],
    }
    return as_json(flow).decode()
