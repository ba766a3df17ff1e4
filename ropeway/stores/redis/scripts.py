"""The Lua of the `lua` folder, read once.

A file is named as its verb. Its comment says what it does, takes and returns, and which files of `lib` it uses: those
that it uses rarely are made when `rarely()` is first called, because every function that a script makes costs time in
every call.
"""

from __future__ import annotations

import re
from hashlib import sha1
from importlib.resources import files
from typing import Final, NamedTuple

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
    rare = _library(text, _RARELY)
    parts = ["local rarely", _library(text, _USES), _rare(rare), text] if rare else [_library(text, _USES), text]
    whole = _COMMENT.sub("", "\n".join(parts))
    return Script(verb, whole, sha1(whole.encode(), usedforsecurity=False).hexdigest())


def _library(text: str, header: re.Pattern[str]) -> str:
    named = header.search(text)
    parts = named[1].split(", ") if named else []
    return "\n".join((_FOLDER / "lib" / f"{part}.lua").read_text("utf-8") for part in parts)


def _rare(library: str) -> str:
    functions = ", ".join(f"{name} = {name}" for name in _FUNCTION.findall(library))
    return f"""
local rare
rarely = function()
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
