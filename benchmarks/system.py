"""What a file in systems/ says about itself, in the block of comments that it begins with.

The block is inline script metadata (PEP 723). It is read without running the file, so a system may be written in
any language whose comments begin with `#` or `//`.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "systems"
ROLES = ("ours", "rival", "limit")


@dataclass(frozen=True)
class System:
    path: Path
    title: str
    family: str
    """What it stores jobs in: systems of one family are compared with each other."""
    role: str
    """One of `ROLES`; a limit is a bare loop that shows what the store itself can do."""
    durable: bool
    """Whether an acknowledged job survives a loss of power, as it is measured here."""
    jobs: int
    """How many jobs to process beside a backlog: a second's worth, or so."""
    dependencies: tuple[str, ...] = ()
    checkout: bool = False
    """Whether it needs this checkout installed."""
    backlogs: bool = True
    """Whether it is measured beside backlogs; without, filling one would take it too long."""
    note: str = ""

    @property
    def name(self) -> str:
        return self.path.stem


def read(path: Path) -> System:
    block = re.search(r"^(#|//) /// script\n(.*?)^\1 ///$", path.read_text(), re.MULTILINE | re.DOTALL)
    if block is None:
        raise ValueError(f"{path} does not begin with a block of metadata: see benchmarks/README.md")
    comment, lines = block.groups()
    script = tomllib.loads("".join(line.removeprefix(comment) + "\n" for line in lines.splitlines()))
    return System(path, dependencies=tuple(script.get("dependencies", ())), **script["tool"]["benchmarks"])


def find() -> list[System]:
    """Every system, ours first and the limits last."""
    systems = [read(path) for path in FOLDER.iterdir() if path.is_file() and path.stem != "__init__"]
    return sorted(systems, key=lambda system: (ROLES.index(system.role), system.name))
