"""Who may send which command of the contract by `POST /v1/do`: a right and the queues for each, without exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from ..job.record import NewJob
from ..store import commands
from ..store.commands import Command
from .admission import Class
from .record_rules import queues_of_record, reached_records, rights_of_record
from .roles import Principal, Right


class Rule(NamedTuple):
    right: tuple[Right, ...]
    """The caller needs one of these; none: any token."""
    queues: Callable[[Any], Iterable[str]]
    """The queues that the command is about: the caller must reach all of them."""
    kind: Class = "manage"
    keeps: Callable[[Any, Principal], Any] | None = None
    """Reduces the answer to what the caller may see."""
    needs: Callable[[Any], tuple[Right, ...]] | None = None
    """A further right that this very command needs."""


def _own(command: Any) -> Iterable[str]:
    return (command.queue,)


def _nowhere(_: Any) -> Iterable[str]:
    return ()


def _of_jobs(jobs: Iterable[NewJob]) -> Iterator[str]:
    """Where jobs are, and where they have parents, children and dead letters."""
    for job in jobs:
        yield job.queue
        if job.parents or job.children:
            yield from (parent.queue for parent in job.parents)
            yield from (child.queue for child in job.children)
        if job.extras is not None and job.extras.dead_letter is not None:
            yield job.extras.dead_letter


def _of_add(command: commands.Add) -> Iterable[str]:
    return {queue for bundle in command.bundles for queue in _of_jobs(bundle)}


def _of_settle(command: commands.Settle) -> Iterable[str]:
    queues = {command.queue, *(queue for outcome in command.outcomes for queue in _of_jobs(outcome.adds))}
    return queues if command.then is None else {*queues, command.then.queue}


def _of_update(command: commands.Update) -> Iterable[str]:
    added = (queue for update in command.updates for queue in _of_jobs(update.adds))
    children = (child.queue for update in command.updates for child in update.children)
    return {command.queue, *added, *children}


def _of_schedules(command: commands.WriteSchedules) -> Iterable[str]:
    return {command.queue, *(queue for write in command.writes for queue in _of_jobs(write.adds))}


def _adds_outcomes(command: commands.Settle) -> tuple[Right, ...]:
    return ("add",) if any(outcome.adds for outcome in command.outcomes) else ()


def _adds_updates(command: commands.Update) -> tuple[Right, ...]:
    if any(update.adds for update in command.updates):
        return ("add",)
    # Without a token anybody's job can be changed, as by a signal.
    return () if all(update.token for update in command.updates) else ("add", "operate")


def _operates(command: commands.Configure) -> tuple[Right, ...]:
    """Workers say which callbacks of retention they have; everything else is for operators."""
    others = [field for field in command.__struct_fields__ if field not in ("queue", "callbacks")]
    changes = [field for field in others if getattr(command, field) not in (None, (), [])]
    return ("operate",) if changes or not command.callbacks else ()


def _of_find(command: commands.Find) -> tuple[Right, ...]:
    """Workers look for waiting jobs that they have no handler for; they could claim all of these."""
    return () if command.states == ("waiting",) else ("read",)


def _reached(queues: list[str], principal: Principal) -> list[str]:
    return [queue for queue in queues if principal.reaches(queue)]


_ADD: Final = Rule(("add",), _of_add, "add")
_WORK: Final = Rule(("work",), _own, "work")
_KEEP: Final = Rule(("work",), _own, "settle")
_FOLLOW: Final = Rule(("follow",), _own)
_READ: Final = Rule(("read",), _own)
_OPERATE: Final = Rule(("operate",), _own)
_RECORD: Final = Rule((), queues_of_record, "manage", reached_records, rights_of_record)

RULES: Final[dict[type[Command[Any]], Rule]] = {
    commands.Add: _ADD,
    commands.Claim: _WORK,
    commands.Withdraw: _KEEP,
    commands.Settle: Rule(("work",), _of_settle, "settle", needs=_adds_outcomes),
    commands.Renew: _KEEP,
    commands.Update: Rule(("work", "add", "operate"), _of_update, "settle", needs=_adds_updates),
    commands.Tick: _WORK,
    commands.Cancel: _OPERATE,
    commands.Retry: _OPERATE,
    commands.Promote: _OPERATE,
    commands.Change: _OPERATE,
    commands.Remove: _OPERATE,
    commands.Configure: Rule(("operate", "work"), _own, needs=_operates),
    # Workers move schedules on when these are due.
    commands.WriteSchedules: Rule(("operate", "work"), _of_schedules),
    commands.ReleaseDedupe: _OPERATE,
    commands.ClearLog: _OPERATE,
    commands.Publish: Rule(("add", "work", "operate"), _own, "add"),
    commands.TrimEvents: _OPERATE,
    commands.Clean: _OPERATE,
    commands.Obliterate: Rule(("administer",), _own),
    commands.Get: _FOLLOW,
    commands.Find: Rule(("read", "work"), _own, needs=_of_find),
    commands.Count: _FOLLOW,
    commands.CountWaiting: _READ,
    commands.ReadMetrics: _READ,
    commands.ReadHistory: _FOLLOW,
    commands.ReadChildren: _FOLLOW,
    commands.ReadSchedules: _FOLLOW,
    commands.ReadDedupe: _FOLLOW,
    commands.ReadLog: _READ,
    commands.ReadSettings: _FOLLOW,
    commands.ListQueues: Rule(("read",), _nowhere, keeps=_reached),
    commands.ReadClock: Rule((), _nowhere),
    commands.ReadEvents: _FOLLOW,
    commands.ReadRevoked: _WORK,
    commands.Remember: _RECORD._replace(keeps=None),
    commands.Recall: _RECORD,
    commands.Forget: _RECORD._replace(keeps=None),
}


def is_audited(rule: Rule, needed: tuple[Right, ...]) -> bool:
    """True for commands that only operators and administrators may send."""
    rights = {*(needed or rule.right)}
    return bool(rights) and rights <= {"operate", "administer"}
