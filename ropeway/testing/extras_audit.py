"""What the auditor checks about dedupe keys and follow-ups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ..job.dedupe import DedupeMode
from ..job.follow_ups import follow_ups_of
from ..job.instants import LAST_INSTANT
from ..job.record import JobRecord, NewJob
from ..job.states import FINAL
from ..store.commands import Add, Command, ReleaseDedupe, Settle, Update, WriteSchedules
from ..store.contract import Store
from ..store.values import Added
from .ledger import Ledger


class KeyLog:
    """Records which dedupe keys jobs were added with."""

    def __init__(self) -> None:
        self.modes: defaultdict[tuple[str, str], set[DedupeMode | None]] = defaultdict(set)
        """By queue and key: the modes of all adds. None stands for a release, after which several jobs may be open."""
        self._keys: dict[tuple[str, str], str] = {}
        """By queue and id: keys of jobs that were created."""

    def note_sent(self, command: Command[Any]) -> None:
        """Before the command, whose answer may be lost."""
        if isinstance(command, ReleaseDedupe):
            self.modes[command.queue, command.key].add(None)
        for job in _new_jobs(command):
            self._keys.pop((job.queue, job.id), None)
            if job.extras is not None and job.extras.dedupe is not None:
                self.modes[job.queue, job.extras.dedupe.key].add(job.extras.dedupe.mode)

    def note_answered(self, command: Command[Any], answer: Any) -> None:
        match command:
            case Add():
                for bundle, added in zip(command.bundles, answer, strict=True):
                    self._note_added(bundle, added)
            case WriteSchedules():
                for write, written in zip(command.writes, answer, strict=True):
                    if written.verdict == "done":
                        self._note_added(write.adds, written.added)

    def _note_added(self, jobs: Iterable[NewJob], answers: Iterable[Added]) -> None:
        for job, added in zip(jobs, answers, strict=True):
            if added.verdict == "created" and job.extras is not None and job.extras.dedupe is not None:
                self._keys[job.queue, job.id] = job.extras.dedupe.key

    def held_twice(self, queue: str, ledger: Ledger) -> Iterable[str]:
        """Keys with several open jobs, where only the mode `until-final` was ever used."""
        open_jobs: defaultdict[str, list[str]] = defaultdict(list)
        for id, state in ledger.states.items():
            key = self._keys.get((queue, id))
            if key is not None and state not in FINAL and id not in ledger.retried:
                open_jobs[key].append(id)
        for key, ids in open_jobs.items():
            if len(ids) > 1 and self.modes[queue, key] == {"until-final"}:
                yield f"the key {key!r} is held by {' and '.join(sorted(ids))}"


async def wrong_keys(store: Store, queue: str, jobs: Sequence[JobRecord], key_log: KeyLog) -> list[str]:
    """Keys that no open job can free any more, and jobs that wait for the end of none."""
    by_id = {job.id: job for job in jobs}
    followers = {
        job.extras.dedupe.key: job.id
        for job in jobs
        if job.due_at == LAST_INSTANT and job.extras and job.extras.dedupe and job.extras.dedupe.mode == "keep-last"
    }
    problems = []
    for key in sorted({*followers, *(key for of_queue, key in key_log.modes if of_queue == queue)}):
        hold = await store.dedupe(queue, key)
        if hold is not None and hold.until is None:
            problems += [
                f"the key {key!r} is held by {id}, which has ended"
                for id in (hold.id, hold.next)
                if id is not None and (id not in by_id or by_id[id].state in FINAL)
            ]
        if key in followers and (hold is None or hold.next != followers[key]):
            problems.append(f"{followers[key]} waits for the end of a job that does not hold the key {key!r}")
    return problems


def follow_up_queues(found: Iterable[Sequence[JobRecord]]) -> set[str]:
    return {follow_up.queue for jobs in found for job in jobs for follow_up in _follow_ups(job)}


def wrong_follow_ups(jobs: Sequence[JobRecord], ledgers: Mapping[str, Ledger]) -> Iterable[str]:
    """Final jobs whose follow-up was never added, follow-ups of jobs that did not end so, and second ones."""
    for job in jobs:
        for follow_up in _follow_ups(job):
            there = ledgers[follow_up.queue]
            if there.is_whole and follow_up.id not in there.added:
                yield f"{job.id} {job.state}, and its follow-up was not added to {follow_up.queue}"
    origins = Counter(job.extras.origin for job in jobs if job.extras and job.extras.origin)
    for origin, count in origins.items():
        source = ledgers.get(origin.queue)
        if source is not None and source.is_whole and (origin.id, origin.event) not in source.ended:
            yield f"{origin.id} has a follow-up, and has not {origin.event}"
        if count > 1:
            yield f"{origin.id} {origin.event} once, and left {count} follow-ups in the same queue"


def _follow_ups(job: JobRecord) -> Iterable[NewJob]:
    """The follow-ups that a job left if it is final."""
    return () if job.extras is None or job.finished_at is None else follow_ups_of(job, job.extras, job.finished_at)


def _new_jobs(command: Command[Any]) -> Iterable[NewJob]:
    match command:
        case Add():
            return chain.from_iterable(command.bundles)
        case WriteSchedules():
            return chain.from_iterable(write.adds for write in command.writes)
        case Settle():
            return chain.from_iterable(outcome.adds for outcome in command.outcomes)
        case Update():
            return chain.from_iterable(update.adds for update in command.updates)
    return ()
