"""Moving one job by hand, and changing it: what is refused is an error that names the state in the way."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ..errors import InvalidInput, InvalidMove, JobNotFound
from ..job.choices import yes_or_no
from ..job.codec import Json, encode
from ..job.durations import Duration
from ..job.moves import MOVES, MoveName
from ..job.names import job_id
from ..job.numbers import whole
from ..job.options import read_options
from ..job.phases import begin_at
from ..job.states import FINAL, OPEN, State
from ..store.values import BATCH, Answer, JobChange, JobUpdate
from .flow_tree import FlowNode, by_queue, descendants, unfinished
from .looking import MOST_LINES, Looking
from .new_jobs import PROGRESS_LIMIT, reason_text
from .queue_part import queue_part

NOT_ACTIVE: Final[tuple[State, ...]] = ("waiting", "waiting-children", "delayed", *FINAL)


@queue_part
class Moving(Looking):
    """The part of `Queue` that cancels, retries, promotes, removes and changes one job."""

    # Set by `Queue`, and documented there.
    size_limit: int

    async def cancel(self, id: str, reason: str | None = None, *, children: bool = False) -> bool:
        """Cancels a job that is not finished, including a running one; False if it was cancelled before.

        With `children`, those below it that are not finished are cancelled too.
        """
        text = reason_text(reason)
        record = await self._record(id) if yes_or_no("children", children) else None
        [answer] = await self.store.cancel(self.name, [job_id(id)], text)
        was_open = self._expect(id, "cancel", answer) != "cancelled"
        if record is not None and record.children:
            # The parent first: nothing starts it then.
            for queue, ids in by_queue(unfinished(await descendants(self.store, record))).items():
                for start in range(0, len(ids), BATCH):
                    await self.store.cancel(queue, ids[start : start + BATCH], text)
        return was_open

    async def retry(self, id: str, *, reset: bool = False, from_phase: str | None = None) -> None:
        """Makes a finished job run once more; `reset` restores all its attempts.

        Results of steps and completed phases stay; `from_phase` begins again at that phase of a pipeline. A completed
        pipeline runs its last phase again.
        """
        marking = None if from_phase is None else begin_at(await self._record(id), from_phase)
        retried = self.store.retry(self.name, [job_id(id)], reset=yes_or_no("reset", reset), marking=marking)
        [answer] = await retried
        self._expect(id, "retry by hand", answer)

    async def promote(self, id: str) -> None:
        """Makes a delayed job wait now."""
        [answer] = await self.store.promote(self.name, [job_id(id)])
        self._expect(id, "promote", answer)

    async def remove(self, id: str, *, force: bool = False, children: bool = True) -> None:
        """Removes a job, and those below it in its flow unless `children` is False; active ones only with `force`.

        Looks first: if one of them is active, nothing is removed. One that a worker takes in that moment stays, and
        `InvalidMove` says so.
        """
        by_force = yes_or_no("force", force)
        below: list[FlowNode] = []
        if yes_or_no("children", children) and (record := await self._record(id)).children:
            below = await descendants(self.store, record)
            for node in below:
                if node.state == "active" and not by_force:
                    raise InvalidMove(node.queue, node.id, "remove", "active", NOT_ACTIVE)
        [answer] = await self.store.remove(self.name, [job_id(id)], force=by_force)
        self._expect(id, "remove", answer, NOT_ACTIVE)
        # The parent was first: it would start if its children were gone.
        for queue, ids in by_queue(below).items():
            for start in range(0, len(ids), BATCH):
                part = ids[start : start + BATCH]
                for one, answer in zip(part, await self.store.remove(queue, part, force=by_force), strict=True):
                    if answer.verdict == "refused":
                        raise InvalidMove(queue, one, "remove", "active", NOT_ACTIVE)

    async def change(
        self,
        id: str,
        *,
        priority: int | None = None,
        lifo: bool | None = None,
        delay: Duration | datetime | None = None,
        data: Json = msgspec.UNSET,
    ) -> None:
        """Changes a job that is not finished: all given fields, or nothing.

        Priority and lifo while it waits or is delayed, delay (counted from now) while it is delayed.
        """
        named = job_id(id)
        options = {"priority": priority, "lifo": lifo, "delay": delay}
        if data is msgspec.UNSET and not any(value is not None for value in options.values()):
            raise InvalidInput("change was given nothing to change: give it a priority, lifo, a delay or data")
        placement, _ = read_options({option: value for option, value in options.items() if value is not None})
        edit = JobChange(
            named,
            None if priority is None else placement.priority,
            None if lifo is None else placement.lifo,
            None if delay is None or placement.due_at is not None else placement.delay,
            placement.due_at,
            None if data is msgspec.UNSET else encode(data, "data", self.size_limit),
        )
        [answer] = await self.store.change(self.name, [edit])
        if delay is not None:
            allowed: tuple[State, ...] = ("delayed",)
        elif priority is not None or lifo is not None:
            allowed = ("waiting", "delayed", "waiting-children")
        else:
            allowed = OPEN
        self._expect(id, "change", answer, allowed)

    async def report_progress(self, id: str, progress: Json) -> None:
        """Sets a job's progress from outside its handler."""
        change = JobUpdate(job_id(id), progress=encode(progress, "progress", PROGRESS_LIMIT))
        [answer] = await self.store.update(self.name, [change])
        self._expect(id, "update", answer, OPEN)

    async def clear_logs(self, id: str, *, keep: int = 0) -> None:
        """Drops all but the newest `keep` log lines of a job, in any state."""
        answer = await self.store.clear_log(self.name, job_id(id), keep=whole("keep", keep, 0, MOST_LINES))
        self._expect(id, "clear logs", answer)

    def _expect(self, id: str, move: MoveName | str, answer: Answer, allowed: tuple[State, ...] = ()) -> State | None:
        """The state before a move that was made; raises the matching error for one that was not."""
        if answer.verdict == "missing":
            raise JobNotFound(self.name, id)
        if answer.verdict == "refused":
            assert answer.state is not None
            sources = allowed or MOVES[move].sources
            raise InvalidMove(self.name, id, move, answer.state, sources)
        return answer.state
