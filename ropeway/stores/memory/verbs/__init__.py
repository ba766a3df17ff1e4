"""The functions that execute the contract's commands: one file for each, or for a few alike.

All of them run inside a `Step`, so an error at any point undoes what they changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ....store import commands
from ....store.commands import Command
from ..step import Step
from . import flows, look, operate, remember
from .add import add
from .change import change
from .claim import claim, withdraw
from .clean import clean, obliterate
from .configure import configure
from .running import clear_log, renew, update
from .settle import settle
from .tick import tick

Verb: TypeAlias = Callable[[Step, Any], Any]

VERBS: Final[Mapping[type[Command[Any]], Verb]] = {
    commands.Add: add,
    commands.Claim: claim,
    commands.Withdraw: withdraw,
    commands.Settle: settle,
    commands.Renew: renew,
    commands.Update: update,
    commands.Tick: tick,
    commands.Cancel: operate.cancel,
    commands.Retry: operate.retry,
    commands.Promote: operate.promote,
    commands.Change: change,
    commands.Remove: operate.remove,
    commands.Configure: configure,
    commands.ClearLog: clear_log,
    commands.Publish: remember.publish,
    commands.TrimEvents: remember.trim_events,
    commands.Clean: clean,
    commands.Obliterate: obliterate,
    commands.Get: look.get,
    commands.Count: look.count,
    commands.CountWaiting: look.count_waiting,
    commands.ReadMetrics: look.metrics,
    commands.ReadHistory: look.history,
    commands.ReadChildren: flows.read_children,
    commands.ReadLog: look.log,
    commands.ReadSettings: look.settings,
    commands.ListQueues: look.queues,
    commands.ReadClock: look.clock,
    commands.ReadEvents: look.events,
    commands.ReadRevoked: look.revoked,
    commands.Remember: remember.remember,
    commands.Recall: look.recall,
    commands.Forget: remember.forget,
}
"""`Find` is missing: it takes several steps, between which other callers get their turn."""
