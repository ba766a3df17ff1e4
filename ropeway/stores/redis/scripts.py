"""The Lua of the `lua` folder, read once.

A file is named as its verb. Its comment says what it does, takes and returns, and which files of `lib` it uses.
"""

from __future__ import annotations

import re
from hashlib import sha1
from importlib.resources import files
from typing import Final, NamedTuple

_FOLDER: Final = files("ropeway.stores.redis") / "lua"
_USES: Final = re.compile(r"^-- Uses: (.+)$", re.MULTILINE)
_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)


class Script(NamedTuple):
    verb: str
    text: str
    sha: str


def _read(verb: str) -> Script:
    text = (_FOLDER / f"{verb}.lua").read_text("utf-8")
    uses = _USES.search(text)
    parts = [(_FOLDER / "lib" / f"{part}.lua").read_text("utf-8") for part in uses[1].split(", ")] if uses else []
    whole = _COMMENT.sub("", "\n".join([*parts, text]))
    return Script(verb, whole, sha1(whole.encode(), usedforsecurity=False).hexdigest())


# All of them now: later the process may have no file left to open.
SCRIPTS: Final = {
    verb: _read(verb)
    for verb, dot, _ in (file.name.partition(".lua") for file in _FOLDER.iterdir() if file.is_file())
    if dot
}
