"""Tables of verbs: which function of a store executes a command. They are built when the store is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import isfunction
from pkgutil import iter_modules
from typing import Any, Final

from .commands import COMMANDS, Command

_COMMANDS: Final = {command.__struct_config__.tag: command for command in COMMANDS}


def verb_table(package: str, path: Iterable[str]) -> dict[type[Command[Any]], Callable[..., Any]]:
    """The functions in the modules of a package that are named as verbs, by the command of that verb.

    `events` executes `ReadEvents`. Functions of other names, and imported ones, are left out.
    """
    table: dict[type[Command[Any]], Callable[..., Any]] = {}
    for module in [import_module(f"{package}.{found.name}") for found in iter_modules(path)]:
        for name, value in vars(module).items():
            if name in _COMMANDS and isfunction(value) and value.__module__ == module.__name__:
                put(table, _COMMANDS[name], value)
    return table


def put(table: dict[type[Command[Any]], Any], command: type[Command[Any]], verb: object) -> None:
    """Adds what executes a command. Raises TypeError if the table has something for it already."""
    if command in table:
        raise TypeError(f"{command.__name__} is executed by two functions: {table[command]} and {verb}")
    table[command] = verb
