"""Makes what a system runs in, once, and gives the command that runs it."""

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from benchmarks.system import System

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = Path(__file__).parent / ".venvs"


def command(system: System) -> list[str]:
    """What to start, followed by a function's name and its arguments; installs the system when it is new."""
    return RUNTIMES[system.path.suffix](system)


def _python(system: System) -> list[str]:
    folder = ENVIRONMENTS / system.name
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = _wanted(system)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {system.title}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        checkout = ["--editable", str(ROOT)] if system.checkout else []
        pip = [str(python), "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *system.dependencies, *checkout], check=True)
        stamp.write_text(wanted)
    # As a module: a system named as the library that it measures would otherwise import itself.
    return [str(python), "-m", f"benchmarks.systems.{system.name}"]


def _wanted(system: System) -> str:
    lines = [sys.version, *system.dependencies]
    if system.checkout:
        lines.append((ROOT / "pyproject.toml").read_text())
    return "\n".join(lines)


def _node(system: System) -> list[str]:
    folder = ENVIRONMENTS / system.name
    stamp = folder / "installed.txt"
    wanted = "\n".join(system.dependencies)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {system.title}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
        subprocess.run([*npm, *system.dependencies], check=True)
        stamp.write_text(wanted)
    # Node looks for packages beside the file that imports them.
    return ["env", f"NODE_PATH={folder / 'node_modules'}", "node", str(system.path)]


RUNTIMES: dict[str, Callable[[System], list[str]]] = {".py": _python, ".cjs": _node}
