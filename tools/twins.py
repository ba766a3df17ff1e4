"""Writes the sync twins from their awaited originals: `python -m tools.twins`, or `--check` to only compare.

A twin's file has a region between two marks. There stands a method for each public `async def` of the original that the
twin does not define by hand elsewhere: with the same signature and docstring, and a body that waits for its answer.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
BEGIN: Final = "    # Written by tools/twins.py: do not edit\n"
END: Final = "    # End of what tools/twins.py writes\n"
HAS_TWIN: Final = r"(JobHandle|FlowHandle|FoundJob|JobPage|ClaimedJob)\b(\[\w+\])?"


class Twin(NamedTuple):
    name: str
    path: str
    attribute: str
    """Where the twin keeps the original."""
    originals: dict[str, str]
    """The awaited class, and those that it inherits from, each with its file, in the order of the twin."""


TWINS: Final = [
    Twin(
        "SyncQueue",
        "ropeway/client/sync_queue.py",
        "_queue",
        {
            "Queue": "ropeway/client/queue.py",
            "Looking": "ropeway/client/looking.py",
            "WorkerOrders": "ropeway/client/worker_orders.py",
            "EventStream": "ropeway/client/event_stream.py",
            "Moving": "ropeway/client/moving.py",
            "MovingMany": "ropeway/client/moving_many.py",
            "HoldingBack": "ropeway/client/holding_back.py",
        },
    ),
    Twin("SyncJobHandle", "ropeway/client/sync_handle.py", "_job", {"JobHandle": "ropeway/client/handle.py"}),
    Twin(
        "SyncSchedules", "ropeway/client/sync_schedules.py", "_schedules", {"Schedules": "ropeway/client/schedules.py"}
    ),
    Twin(
        "SyncClaimedJob",
        "ropeway/worker/sync.py",
        "_claimed",
        {
            "Durable": "ropeway/worker/durable.py",
            "Job": "ropeway/worker/job.py",
            "ClaimedJob": "ropeway/worker/manual.py",
        },
    ),
]


def main() -> int:
    stale = [twin.path for twin in TWINS if not write(twin, only_check="--check" in sys.argv)]
    if stale:
        print(f"out of date: {', '.join(stale)}; run `python -m tools.twins`", file=sys.stderr)  # noqa: T201
    return len(stale)


def write(twin: Twin, *, only_check: bool) -> bool:
    """Whether the file was as it should be, or is now."""
    path = ROOT / twin.path
    before = path.read_text()
    head, _, rest = before.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise SystemExit(f"{twin.path} lacks the mark {BEGIN.strip()!r} or {END.strip()!r}")
    by_hand = {method.name for method in methods(head + "\n" + tail, twin.name)}
    # By name: a class may override what it inherits.
    generated = {
        method.name: method_of(method, twin)
        for original, source in twin.originals.items()
        for method in methods((ROOT / source).read_text(), original)
        if isinstance(method, ast.AsyncFunctionDef) and not method.name.startswith("_") and method.name not in by_hand
    }
    after = formatted(f"{head}{BEGIN}\n{''.join(generated.values())}{END}{tail}")
    if not only_check and after != before:
        path.write_text(after)
    return not only_check or after == before


def methods(source: str, name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    [kind] = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name]
    return (node for node in kind.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def method_of(method: ast.AsyncFunctionDef, twin: Twin) -> str:
    assert method.returns is not None, f"{method.name} says what it answers"
    answer = ast.unparse(method.returns)
    call = f"run(self.{twin.attribute}.{method.name}({arguments(method.args)}))"
    documented = ast.get_docstring(method, clean=False)
    answered = re.sub(HAS_TWIN, r"Sync\1\2", answer)
    lines = [f"def {method.name}({ast.unparse(method.args)}) -> {answered}:"]
    if documented:
        lines.append(f'    """{documented}"""'.replace("\n        ", "\n    "))
    lines += [f"    {line}" for line in body_of(call, answer)]
    return "".join(f"    {line}\n" if line else "\n" for line in "\n".join(lines).split("\n")) + "\n"


def body_of(call: str, answer: str) -> list[str]:
    if answer == "None":
        return [call]
    if re.fullmatch(HAS_TWIN, answer):
        return [f"return {call}.sync"]
    if re.fullmatch(rf"{HAS_TWIN} \| None", answer):
        return [f"found = {call}", "return None if found is None else found.sync"]
    if re.fullmatch(rf"list\[{HAS_TWIN}\]", answer):
        return [f"return [job.sync for job in {call}]"]
    return [f"return {call}"]


def arguments(given: ast.arguments) -> str:
    """The parameters, passed on."""
    positional = [arg.arg for arg in (*given.posonlyargs, *given.args)][1:]
    several = [f"*{given.vararg.arg}"] if given.vararg else []
    by_name = [f"{arg.arg}={arg.arg}" for arg in given.kwonlyargs]
    rest = [f"**{given.kwarg.arg}"] if given.kwarg else []
    return ", ".join([*positional, *several, *by_name, *rest])


def formatted(source: str) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "twin.py", "-"]
    return subprocess.run(ruff, input=source, capture_output=True, text=True, check=True, cwd=ROOT).stdout  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
