"""The functions that execute commands, each named as its verb: they pack fields, run a script, read the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from ....job.instants import Instant
from ....store.commands import Command
from ....store.verb_table import verb_table
from ..executor import Executor

Verb: TypeAlias = Callable[[Executor, Any, Instant | None], Awaitable[Any]]
Verbs: TypeAlias = Mapping[type[Command[Any]], Verb]

VERBS: Final[Verbs] = verb_table(__name__, __path__)
