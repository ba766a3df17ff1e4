"""A store proxy that records what another store answers, and checks that it is consistent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from ..job.flows import CHILD_STATES
from ..job.instants import Instant
from ..job.outcomes import Outcome
from ..job.record import JobRecord
from ..job.states import FINAL, STATES
from ..store.commands import Claim, Command, Configure, Find, Obliterate, Settle, Tick, TrimEvents
from ..store.contract import Store
from ..store.values import Answer, Claimed, Cleaned, Settings, Settled
from .extras_audit import KeyLog, follow_up_queues, wrong_follow_ups, wrong_keys
from .ledger import Ledger
from .proxy import StoreProxy

A = TypeVar("A")

_PAGE = 1_000


class AuditLog:
    """Records of all handles of one audited store."""

    def __init__(self) -> None:
        self.ledgers: defaultdict[str, Ledger] = defaultdict(Ledger)
        self.runs: dict[tuple[str, str, str], int] = {}
        """By token and job (queue and id): the start that the token was given for."""
        self.accepted: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        """By job: the tokens whose completion was acknowledged."""
        self.key_log = KeyLog()
        self.problems: list[str] = []

    def note(self, command: Command[Any], answer: Any) -> None:
        match command, answer:
            case Claim(), Claimed():
                self.note_claim(command, answer)
            case Settle(), Settled():
                self.note_completions(command.queue, command.outcomes, answer.answers)
                if command.then and answer.claimed:
                    self.note_claim(command.then, answer.claimed)
            case Configure(), Settings():
                self.ledgers[command.queue].max_active = answer.max_active
            case Obliterate(), Cleaned(active=0):
                self.ledgers[command.queue].lose_track()

    def note_claim(self, request: Claim, claimed: Claimed) -> None:
        for job in claimed.jobs:
            if job.state != "active" or job.token != request.token:
                self.problems.append(f"{job.id} was given out {job.state} under {job.token!r}")
            key = job.queue, job.id, job.token or ""
            # A repeat that finds none of its jobs counts as a first claim with the same token.
            is_first = self.runs.setdefault(key, job.attempts_started) == job.attempts_started
            if not is_first and not request.repeat:
                self.problems.append(f"the token {job.token!r} was given for two claims of {job.id}")

    def note_completions(self, queue: str, outcomes: Sequence[Outcome], answers: Sequence[Answer]) -> None:
        for outcome, answer in zip(outcomes, answers, strict=True):
            if outcome.move == "complete" and answer.verdict == "done":
                self.accepted[queue, outcome.id].add(outcome.token)

    def clear(self) -> None:
        """Forgets everything, also for the other handles that share it."""
        self.__dict__.update(AuditLog().__dict__)


class AuditedStore(StoreProxy):
    """Passes every call on; `check` fails if the recorded answers contradict each other.

    It compares the stream of events with the table of moves and with the jobs, the counters with a recount,
    and the answers of claims and completions with each other. Removed jobs and trimmed events are no fault.
    """

    reads_before: tuple[type[Tick | TrimEvents | Configure | Obliterate], ...] = (
        Tick,
        TrimEvents,
        Configure,
        Obliterate,
    )
    """Commands that remove events, or set a limit that holds from then on: earlier events are read before them."""

    def __init__(self, store: Store, audit_log: AuditLog | None = None) -> None:
        super().__init__(store)
        self.audit_log = audit_log or AuditLog()

    def sibling(self) -> Self:
        return type(self)(self.inner.sibling(), self.audit_log)

    async def do(self, command: Command[A], now: Instant | None = None) -> A:
        await self._prepare(command)
        self.audit_log.key_log.note_sent(command)
        answer = await super().do(command, now)
        self.audit_log.note(command, answer)
        self.audit_log.key_log.note_answered(command, answer)
        return answer

    async def _prepare(self, command: Command[Any]) -> None:
        if isinstance(command, self.reads_before):
            await self._catch_up(command.queue)

    async def check(self) -> None:
        """Raises AssertionError with all inconsistencies."""
        problems = list(self.audit_log.problems)
        queues = sorted({*self.audit_log.ledgers, *await self.inner.queues()})
        found = {queue: [job async for job in self._all_jobs(queue)] for queue in queues}
        # A queue whose jobs are all gone is not listed, and may have had follow-ups.
        for queue in {*queues, *follow_up_queues(found.values())}:
            await self._catch_up(queue)
        for queue, jobs in found.items():
            ledger = self.audit_log.ledgers[queue]
            problems += [
                *ledger.problems,
                *_unlike_the_stream(ledger, jobs),
                *_broken(jobs),
                *wrong_follow_ups(jobs, self.audit_log.ledgers),
                *await wrong_keys(self.inner, queue, jobs, self.audit_log.key_log),
                *self._completed_twice(queue),
                *await self._miscounted(queue, jobs),
                *await self._unlike_get(queue, jobs),
                *[problem for job in jobs if _has_children(job) for problem in await self._miscounted_children(job)],
            ]
        assert not problems, "\n".join(["the store broke its contract:", *problems])

    async def start_over(self) -> None:
        """Removes every queue with everything in it, and forgets what was recorded."""
        for queue in {*self.audit_log.ledgers, *await self.inner.queues()}:
            while (await self.inner.obliterate(queue, force=True)).more:
                pass
        self.audit_log.clear()

    async def _catch_up(self, queue: str) -> None:
        ledger = self.audit_log.ledgers[queue]
        while True:
            seen = ledger.cursor
            page = await self.inner.events(queue, seen, limit=_PAGE)
            if ledger.cursor != seen:
                continue  # another task has read on meanwhile
            if page.gap:
                ledger.lose_track()
            for stored in page.entries:
                ledger.read(stored.entry)
            ledger.cursor = page.cursor
            if not page.entries:
                # Not between the entries of one step, which may announce an add before the end that made it possible.
                for problem in self.audit_log.key_log.held_twice(queue, ledger):
                    if problem not in ledger.problems:
                        ledger.problems.append(problem)
                return

    async def _all_jobs(self, queue: str) -> AsyncIterator[JobRecord]:
        query: Find | None = Find(queue, STATES, limit=_PAGE)
        while query:
            page = await self.inner.find(query)
            for job in page.jobs:
                yield job
            query = Find(queue, STATES, limit=_PAGE, after=page.next) if page.next else None

    def _completed_twice(self, queue: str) -> Iterable[str]:
        ledger = self.audit_log.ledgers[queue]
        for (of_queue, id), tokens in self.audit_log.accepted.items():
            if of_queue == queue and ledger.is_whole and len(tokens) > ledger.completions[id]:
                yield f"{len(tokens)} completions of {id} were accepted, {ledger.completions[id]} happened"

    async def _miscounted(self, queue: str, jobs: list[JobRecord]) -> Iterable[str]:
        recount = Counter(job.state for job in jobs)
        counts = await self.inner.count(queue)
        if counts != {state: recount[state] for state in STATES}:
            return [f"{queue} counts {counts}, and has {dict(recount)}"]
        return []

    async def _miscounted_children(self, job: JobRecord) -> Iterable[str]:
        recount: Counter[str] = Counter()
        after: str | None = None
        while True:
            page = await self.inner.children(job.queue, job.id, after=after, limit=_PAGE)
            if page is None:
                return [f"{job.id} is there, and its children cannot be read"]
            recount.update(child.state for child in page.children)
            after = page.next
            if after is None:
                break
        problems = []
        if page.counts != {state: recount[state] for state in CHILD_STATES} or job.children != recount.total():
            problems.append(f"{job.id} counts {job.children} children, {page.counts}, and has {dict(recount)}")
        if job.state == "waiting-children" and not page.awaited:
            problems.append(f"{job.id} waits for children, and none of them is awaited")
        return problems

    async def _unlike_get(self, queue: str, jobs: list[JobRecord]) -> Iterable[str]:
        got = [one and replace(one, marks=()) for one in await self.inner.get(queue, [job.id for job in jobs])]
        return [f"find says {job!r}, get says {other!r}" for job, other in zip(jobs, got, strict=True) if job != other]


def _has_children(job: JobRecord) -> bool:
    return job.children > 0 or job.state == "waiting-children"


def _unlike_the_stream(ledger: Ledger, jobs: list[JobRecord]) -> Iterable[str]:
    found = {job.id: job.state for job in jobs}
    for id, state in ledger.states.items():
        if found.get(id) != state:
            yield f"{id} is {found.get(id, 'not there')}, its events end with {state}"
    for id in found.keys() - ledger.states.keys():
        if ledger.is_whole or id in ledger.gone:
            yield f"{id} is {found[id]}, its events say that it is not there"


def _broken(jobs: Iterable[JobRecord]) -> Iterable[str]:
    for job in jobs:
        fields = {
            "due_at": (job.due_at is not None, job.state == "delayed"),
            "lock_until": (job.lock_until is not None, job.state == "active"),
            "finished_at": (job.finished_at is not None, job.state in FINAL),
        }
        if job.expires_at is not None and job.state not in FINAL:
            yield f"{job.id} is {job.state} with expires_at {job.expires_at}"
        for field, (is_set, should_be) in fields.items():
            if is_set != should_be:
                yield f"{job.id} is {job.state} with {field} {getattr(job, field)}"
        if job.state == "active" and (job.token is None or job.worker is None):
            yield f"{job.id} is active under {job.token!r} of {job.worker!r}"
