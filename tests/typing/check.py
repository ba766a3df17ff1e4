"""Runs both type checkers over the right and the wrong uses: they must report the marked lines, and no others.

The README is a right use too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

from tests.docs.pages import ROOT, blocks_of

HERE: Final = Path(__file__).parent
FILES: Final = (HERE / "right.py", HERE / "wrong.py")
MARK: Final = "# wrong"

Place: TypeAlias = tuple[str, int]
"""A file's name and a line of it."""


def from_page(page: Path, folder: Path) -> Path:
    """A page's blocks as one coroutine function, on the lines that they have on the page."""
    lines: dict[int, str] = {}
    for block in blocks_of(page, "python"):
        lines |= {number: f"    {line}" for number, line in enumerate(block.text.splitlines(), block.line)}
    written = folder / f"{page.stem.lower()}.py"
    text = [lines.get(number, "") for number in range(2, max(lines) + 1)]
    written.write_text("\n".join(["async def page() -> None:", *text]) + "\n")
    return written


def marked(files: tuple[Path, ...] = FILES) -> set[Place]:
    return {
        (file.name, number)
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.endswith(MARK)
    }


def mypy(files: tuple[Path, ...] = FILES) -> set[Place]:
    ran = _run("-m", "mypy", "--no-error-summary", "--hide-error-context", *map(str, files))
    found = re.findall(r"^(?:.*[/\\])?(\w+\.py):(\d+)(?::\d+)?: error: ", ran, re.MULTILINE)
    return {(name, int(line)) for name, line in found}


def pyright(files: tuple[Path, ...] = FILES) -> set[Place]:
    ran = _run("-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *map(str, files))
    return {
        (Path(found["file"]).name, found["range"]["start"]["line"] + 1)
        for found in json.loads(ran)["generalDiagnostics"]
        if found["severity"] == "error"
    }


def differences(name: str, expected: set[Place], reported: set[Place]) -> list[str]:
    accepted = [f"{name} accepts {file}:{line}, which is marked as wrong" for file, line in expected - reported]
    refused = [f"{name} refuses {file}:{line}, which is not marked" for file, line in reported - expected]
    return sorted(accepted + refused)


def _run(*arguments: str) -> str:
    """What a checker says; its exit code says only that it found the wrong uses."""
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        sys.exit(f"{' '.join(arguments[:2])} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def main(checkers: tuple[Callable[[tuple[Path, ...]], set[Place]], ...] = (mypy, pyright)) -> None:
    with TemporaryDirectory() as folder:
        files = (*FILES, from_page(ROOT / "README.md", Path(folder)))
        found = [line for checker in checkers for line in differences(checker.__name__, marked(files), checker(files))]
    print(*(found or [f"{len(marked())} wrong uses are reported by both type checkers"]), sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
