"""Handles on the jobs of flows that were added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import DuplicateJob
from ..job.codec import Json, decode
from ..job.record import NewJob
from ..store.values import Added
from .flows import FlowHandle

if TYPE_CHECKING:
    from .queue import Queue

Key: TypeAlias = tuple[str, str]
"""Queue and id."""


class FlowHandles:
    """Makes the handles on jobs of a bundle when they are asked for: of ten thousand children few are.

    Raises `DuplicateJob` if an id was taken. `queues` are those of the jobs, by name, and `readers` read the results of
    typed tasks.
    """

    def __init__(
        self,
        bundle: Sequence[NewJob],
        answers: Sequence[Added],
        queues: Mapping[str, Queue],
        readers: Mapping[Key, Callable[[Json], Any]],
    ) -> None:
        self._bundle = bundle
        self._queues = queues
        self._readers = readers
        self._made: dict[Key, FlowHandle] = {}
        others = [pair for pair in zip(bundle, answers, strict=True) if pair[1].verdict != "created"]
        for job, answer in reversed(others):
            if answer.verdict == "conflict":
                error = DuplicateJob(job.queue, answer.id, is_child=bool(job.parents))
                error.add_note("Nothing of the flow was stored.")
                raise error
        self._not_created = {(job.queue, job.id): answer for job, answer in others}

    def of(self, job: NewJob) -> FlowHandle:
        key = job.queue, job.id
        handle = self._made.get(key)
        if handle is None:
            handle = self._made[key] = self._handle(job, self._not_created.get(key))
        return handle

    def _handle(self, job: NewJob, answer: Added | None) -> FlowHandle:
        is_created = answer is None
        return FlowHandle(
            self._queues[job.queue],
            job.id if answer is None else answer.id,
            job.name,
            decode(job.data),
            partial(self._children, job, is_created) if job.children else None,
            created=is_created,
            deduplicated=answer is not None and answer.verdict == "deduplicated",
            read_result=self._readers.get((job.queue, job.id)),
        )

    def _children(self, parent: NewJob, is_created: bool) -> tuple[FlowHandle, ...]:
        """A flow that was found has other children than those whose ids were made for this bundle."""
        children = [self._jobs[child.queue, child.id] for child in parent.children]
        return tuple(self.of(child) for child in children if is_created or not child.is_fresh)

    @cached_property
    def _jobs(self) -> dict[Key, NewJob]:
        return {(job.queue, job.id): job for job in self._bundle}
