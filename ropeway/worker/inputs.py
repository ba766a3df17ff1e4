"""Filling parameters of a task with the results of the jobs before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..client.flow_tree import ALL, read_children
from ..errors import Unrecoverable
from ..job.codec import Json, decode, encode
from ..job.options import Taken

if TYPE_CHECKING:
    from .job import Job


async def fill_inputs(job: Job, takes: Mapping[str, Taken]) -> None:
    """Adds results of the job's children to its data, under the names of the parameters that take them."""
    children, _ = await read_children(job.queue.store, job.queue.name, job.id, ALL)
    results = {(child.queue, child.id): child for child in children}
    data = job.record.read_data()
    filled: dict[str, Json] = dict(data) if isinstance(data, dict) else {}
    for parameter, taken in takes.items():
        keys = [*results][: taken.first] if taken.children is None else taken.children
        found = [results[key] for key in keys if key in results and results[key].state == "completed"]
        values = [None if child.result is None else decode(child.result) for child in found]
        if not taken.many and not values:
            [(queue, id)] = keys
            known = results.get((queue, id))
            why = f": {known.reason}" if known and known.reason else ""
            raise Unrecoverable(f"{parameter!r} takes the result of {queue}/{id}, which gave none{why}")
        filled[parameter] = values if taken.many else values[0]
    # Results may be larger together than data may be.
    job.record = replace(job.record, data=encode(filled, "data", 2**40))
