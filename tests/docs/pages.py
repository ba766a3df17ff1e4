"""The pages that are tested, and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DJANGO: Final = ROOT / "docs" / "django.md"
"""A project in several files, which has a test of its own."""
PAGES: Final = [
    ROOT / "README.md",
    ROOT / "llms.txt",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
_BLOCK: Final = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path, *languages: str) -> list[Block]:
    text = page.read_text()
    found = []
    for match in _BLOCK.finditer(text):
        indent, language, body = match.groups()
        if language in languages:
            lines = [line.removeprefix(indent) for line in body.splitlines()]
            found.append(Block(page, text.count("\n", 0, match.start(3)) + 1, language, "\n".join(lines) + "\n"))
    return found


def blocks(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page, *languages)]
