"""The functions that execute the contract's commands: one file for each, or for a few alike.

Each is named as its verb. All of them run inside a `Step`, so an error at any point undoes what they changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ....store.commands import Command
from ....store.verb_table import verb_table
from ..step import Step

Verb: TypeAlias = Callable[[Step, Any], Any]

VERBS: Final[Mapping[type[Command[Any]], Verb]] = verb_table(__name__, __path__)
"""`Find` is missing: it takes several steps, between which other callers get their turn."""
