"""The table of commands: which function executes each, and on which thread.

A function takes a `Transaction` and the fields of its command, in their order; `claim` and `find` take it whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ...store import commands
from ...store.commands import Command
from . import governing, hearing, looking, operating, remembering, updating
from .adding import add
from .claiming import claim
from .finding import find
from .settling import settle
from .ticking import tick

Verb: TypeAlias = Callable[..., Any]


WHOLE: Final[frozenset[type[Command[Any]]]] = frozenset({commands.Claim, commands.Find})


class Write(NamedTuple):
    """By the writer, in the transaction of its round."""

    verb: Verb
    must_last: bool = True
    """Waits for the disk.

    A power cut may undo a claim, a renewal or a tick, and with them goes the worker that knew of it: the job
    waits again, and this start is not counted. Whatever is durable later makes durable what came before.
    """
    is_thorough: bool = False


class Read(NamedTuple):
    """By the reader, beside the writer."""

    verb: Verb
    sees_inbox: bool = True
    """New jobs matter to it: those of the inbox come into the file first."""


VERBS: Final[Mapping[type[Command[Any]], Write | Read]] = {
    commands.Add: Write(add),
    commands.Claim: Write(claim, must_last=False),
    commands.Settle: Write(settle),
    commands.Renew: Write(updating.renew, must_last=False),
    commands.Update: Write(updating.update),
    commands.Tick: Write(tick, must_last=False, is_thorough=True),
    commands.Cancel: Write(operating.cancel),
    commands.Retry: Write(operating.retry),
    commands.Promote: Write(operating.promote),
    commands.Change: Write(operating.change),
    commands.Remove: Write(operating.remove),
    commands.Configure: Write(governing.configure),
    commands.ClearLog: Write(operating.clear_log),
    commands.Publish: Write(governing.publish),
    commands.TrimEvents: Write(governing.trim_events),
    commands.Clean: Write(governing.clean),
    commands.Obliterate: Write(governing.obliterate),
    commands.Get: Read(looking.get),
    commands.Find: Read(find),
    commands.Count: Read(looking.count),
    commands.CountWaiting: Read(looking.count_waiting),
    commands.ReadMetrics: Read(looking.metrics),
    commands.ReadHistory: Read(looking.history),
    commands.ReadLog: Read(looking.log),
    commands.ReadSettings: Read(looking.settings, sees_inbox=False),
    commands.ListQueues: Read(looking.queues),
    commands.ReadClock: Read(looking.clock, sees_inbox=False),
    commands.ReadEvents: Read(hearing.events),
    commands.ReadRevoked: Read(hearing.revoked, sees_inbox=False),
    commands.Remember: Write(remembering.remember),
    commands.Recall: Read(remembering.recall, sees_inbox=False),
    commands.Forget: Write(remembering.forget),
}
