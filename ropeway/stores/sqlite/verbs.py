"""The table of commands: which function executes each, and on which thread.

A function takes a `Transaction` and the fields of its command, in their order; `claim` and `find` take it whole.
`Withdraw` is missing: it concerns claims that wait outside of any transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ...store import commands
from ...store.commands import Command
from . import children, operating, queries, queues, records, streams, updating
from .adding import add
from .claiming import claim
from .finding import find
from .retrying import retry
from .settling import settle
from .ticking import tick

Verb: TypeAlias = Callable[..., Any]


WHOLE: Final[frozenset[type[Command[Any]]]] = frozenset({commands.Claim, commands.Find})


class Write(NamedTuple):
    """A verb that the writer executes, in the transaction of its round."""

    verb: Verb
    must_last: bool = True
    """True if the answer waits for the disk.

    A power cut may undo a claim, a renewal or a tick, and with them goes the worker that knew of it: the job
    waits again, and this start is not counted. Whatever is durable later makes durable what came before.
    """
    is_thorough: bool = False


class Read(NamedTuple):
    """A verb that the reader executes, beside the writer."""

    verb: Verb
    sees_inbox: bool = True
    """True if it must see new jobs: the inbox is ingested first."""


VERBS: Final[Mapping[type[Command[Any]], Write | Read]] = {
    commands.Add: Write(add),
    commands.Claim: Write(claim, must_last=False),
    commands.Settle: Write(settle),
    commands.Renew: Write(updating.renew, must_last=False),
    commands.Update: Write(updating.update),
    commands.Tick: Write(tick, must_last=False, is_thorough=True),
    commands.Cancel: Write(operating.cancel),
    commands.Retry: Write(retry),
    commands.Promote: Write(operating.promote),
    commands.Change: Write(operating.change),
    commands.Remove: Write(operating.remove),
    commands.Configure: Write(queues.configure),
    commands.ClearLog: Write(operating.clear_log),
    commands.Publish: Write(queues.publish),
    commands.TrimEvents: Write(queues.trim_events),
    commands.Clean: Write(queues.clean),
    commands.Obliterate: Write(queues.obliterate),
    commands.Get: Read(queries.get),
    commands.Find: Read(find),
    commands.Count: Read(queries.count),
    commands.CountWaiting: Read(queries.count_waiting),
    commands.ReadMetrics: Read(queries.metrics),
    commands.ReadHistory: Read(queries.history),
    commands.ReadChildren: Read(children.children),
    commands.ReadLog: Read(queries.log),
    commands.ReadSettings: Read(queries.settings, sees_inbox=False),
    commands.ListQueues: Read(queries.queues),
    commands.ReadClock: Read(queries.clock, sees_inbox=False),
    commands.ReadEvents: Read(streams.events),
    commands.ReadRevoked: Read(streams.revoked, sees_inbox=False),
    commands.Remember: Write(records.remember),
    commands.Recall: Read(records.recall, sees_inbox=False),
    commands.Forget: Write(records.forget),
}
