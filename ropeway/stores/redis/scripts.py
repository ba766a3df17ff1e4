"""Loads the scripts of the `lua` folder.

A file is named as its verb. Its comment says what it does, takes and returns, and which files of `lib` it uses. Every
function that a script makes costs time in every call, so some are made on first use: those that are used rarely by
`rarely()`, those for the ends of parents and children by `in_flows()`, those that add flows by `new_flows()`, those for
jobs that outcomes add by `with_adds()`, those for marks of outcomes by `with_marks()`, and those for jobs with dedupe
keys, deadlines or dead letters by `with_rules()`. Each of these groups has its own copy of the files that it uses: a
Lua function has at most 200 local variables. What the domain states is not written again in Lua: `{{NAME}}` stands for
a value of `constants.py`.
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
_LATER: Final = {
    "rarely": re.compile(r"^-- Rarely: (.+)$", re.MULTILINE),
    "in_flows": re.compile(r"^-- In flows: (.+)$", re.MULTILINE),
    "new_flows": re.compile(r"^-- New flows: (.+)$", re.MULTILINE),
    "with_adds": re.compile(r"^-- With adds: (.+)$", re.MULTILINE),
    "with_marks": re.compile(r"^-- With marks: (.+)$", re.MULTILINE),
    "with_rules": re.compile(r"^-- With rules: (.+)$", re.MULTILINE),
}
_FUNCTION: Final = re.compile(r"^local function (\w+)", re.MULTILINE)
_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)


class Script(NamedTuple):
    verb: str
    text: str
    sha: str


def _read(verb: str) -> Script:
    text = (_FOLDER / f"{verb}.lua").read_text("utf-8")
    later = {name: parts for name, header in _LATER.items() if (parts := _parts(text, header))}
    # They come first and share nothing: each name that a function finds outside costs as much as another function.
    names = [f"local {', '.join(later)}" for _ in [*later][:1]]
    pieces = [*names, *(_made_later(name, _library(parts)) for name, parts in later.items())]
    pieces += [_library(_parts(text, _USES)), text]
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


def _made_later(name: str, library: str) -> str:
    functions = ", ".join(f"{function} = {function}" for function in _FUNCTION.findall(library))
    return f"""
local made_{name}
{name} = function()
if made_{name} then
return made_{name}
end
{library}
made_{name} = {{ {functions} }}
return made_{name}
end
"""


# All of them now: later the process may have no file left to open.
SCRIPTS: Final = {
    verb: _read(verb)
    for verb, dot, _ in (file.name.partition(".lua") for file in _FOLDER.iterdir() if file.is_file())
    if dot
}
