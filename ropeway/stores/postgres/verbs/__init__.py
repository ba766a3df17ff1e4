"""The table of commands: which Python function executes each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from ....job.instants import Instant
from ....store import commands
from ....store.commands import Command
from ..executor import Executor
from . import govern, look, operate, remember, run

Verb: TypeAlias = Callable[[Executor, Any, Instant | None], Awaitable[Any]]

VERBS: Final[Mapping[type[Command[Any]], Verb]] = {
    commands.Add: run.add,
    commands.Claim: run.claim,
    commands.Withdraw: run.withdraw,
    commands.Settle: run.settle,
    commands.Renew: run.renew,
    commands.Update: run.update,
    commands.Tick: run.tick,
    commands.Cancel: operate.cancel,
    commands.Retry: operate.retry,
    commands.Promote: operate.promote,
    commands.Change: operate.change,
    commands.Remove: operate.remove,
    commands.ClearLog: operate.clear_log,
    commands.Configure: govern.configure,
    commands.Publish: govern.publish,
    commands.TrimEvents: govern.trim_events,
    commands.Clean: govern.clean,
    commands.Obliterate: govern.obliterate,
    commands.Get: look.get,
    commands.Find: look.find,
    commands.Count: look.count,
    commands.CountWaiting: look.count_waiting,
    commands.ReadMetrics: look.metrics,
    commands.ReadHistory: look.history,
    commands.ReadLog: look.log,
    commands.ReadChildren: look.children,
    commands.ReadSettings: look.settings,
    commands.ListQueues: look.queues,
    commands.ReadClock: look.clock,
    commands.ReadEvents: look.events,
    commands.ReadRevoked: look.revoked,
    commands.Remember: remember.remember,
    commands.Recall: remember.recall,
    commands.Forget: remember.forget,
}
