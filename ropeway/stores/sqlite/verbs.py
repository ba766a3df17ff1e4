"""The table of commands: which function executes each, and on which thread.

A function takes a `Transaction` and the fields of its command, in their order, or the command. A decorator puts it into
the table. `Withdraw` is missing: it concerns claims that wait outside of any transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from ...store.commands import Command
from ...store.verb_table import put

Verb: TypeAlias = Callable[..., Any]
V = TypeVar("V", bound=Verb)


class Write(NamedTuple):
    """A verb that the writer executes, in the transaction of its round."""

    verb: Verb
    must_last: bool = True
    """True if the answer waits for the disk.

    A power cut may undo a claim, a renewal or a tick, and with them goes the worker that knew of it: the job
    waits again, and this start is not counted. Whatever is durable later makes durable what came before.
    """
    is_thorough: bool = False
    takes_whole: bool = False
    """True if it takes the command, False if it takes its fields."""


class Read(NamedTuple):
    """A verb that the reader executes, beside the writer."""

    verb: Verb
    sees_inbox: bool = True
    """True if it must see new jobs: the inbox is ingested first."""
    takes_whole: bool = False


VERBS: Final[dict[type[Command[Any]], Write | Read]] = {}
"""Complete once `__init__.py` has imported the modules of all verbs."""


def writes(
    command: type[Command[Any]], *, must_last: bool = True, is_thorough: bool = False, takes_whole: bool = False
) -> Callable[[V], V]:
    """Decorates the function that executes a command on the writer; see `Write`."""

    def note(verb: V) -> V:
        put(VERBS, command, Write(verb, must_last, is_thorough, takes_whole))
        return verb

    return note


def reads(command: type[Command[Any]], *, sees_inbox: bool = True, takes_whole: bool = False) -> Callable[[V], V]:
    """Decorates the function that executes a command on the reader; see `Read`."""

    def note(verb: V) -> V:
        put(VERBS, command, Read(verb, sees_inbox, takes_whole))
        return verb

    return note
