"""Loads the scripts of the `lua` folder.

A file is named as its verb. Its comment says what it does, takes and returns, and which files of `lib` it uses: those
that it uses rarely are made when `rarely()` is first called, because every function that a script makes costs time in
every call. What the domain states is not written again in Lua: `{{NAME}}` stands for a value of `constants.py`.
"""

from __future__ import annotations

import re
from hashlib import sha1
from importlib.resources import files
from typing import Final, NamedTuple

from ...store.templates import fill
from .constants import VALUES

_FOLDER: Final = files("ropeway.stores.redis") / "lua"
_USES: Final = re.compile(r"^-- Uses: (.+)$", re.MULTILINE)
_RARELY: Final = re.compile(r"^-- Rarely: (.+)$", re.MULTILINE)
_FUNCTION: Final = re.compile(r"^local function (\w+)", re.MULTILINE)
_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)


class Script(NamedTuple):
    verb: str
    text: str
    sha: str


def _read(verb: str) -> Script:
    text = (_FOLDER / f"{verb}.lua").read_text("utf-8")
    rare = _parts(text, _RARELY)
    # It comes first and shares nothing: each name that a function finds outside costs as much as another function.
    pieces = [*(_rare(_library(rare)) for _ in rare[:1]), _library(_parts(text, _USES)), text]
    whole = fill(_COMMENT.sub("", "\n".join(pieces)), VALUES)
    return Script(verb, whole, sha1(whole.encode(), usedforsecurity=False).hexdigest())


def _parts(text: str, header: re.Pattern[str]) -> list[str]:
    """The files of `lib` that a script names, in an order in which each comes after those that it uses."""
    named = header.search(text)
    parts: list[str] = []
    for part in named[1].split(", ") if named else []:
        parts += [*_parts(_part(part), _USES), part]
    return list(dict.fromkeys(parts))


def _part(name: str) -> str:
    return (_FOLDER / "lib" / f"{name}.lua").read_text("utf-8")


def _library(parts: list[str]) -> str:
    return "\n".join(_part(part) for part in parts)


def _rare(library: str) -> str:
    functions = ", ".join(f"{name} = {name}" for name in _FUNCTION.findall(library))
    return f"""
local rare
local function rarely()
if rare then
return rare
end
{library}
rare = {{ {functions} }}
return rare
end
"""


# All of them now: later the process may have no file left to open.
SCRIPTS: Final = {
    verb: _read(verb)
    for verb, dot, _ in (file.name.partition(".lua") for file in _FOLDER.iterdir() if file.is_file())
    if dot
}
