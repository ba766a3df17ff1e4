"""A flow as a table whose first column is a tree."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from ...client.flow_tree import FlowNode
from ...job.flows import DEFAULT_POLICY
from ...job.states import FINAL
from ..ids import is_narrow, short_id
from ..live.texts import seconds
from ..tables import Column, table_lines
from ..text import age, shown

COLUMNS = (
    Column("job"),
    Column("id", is_whole=True),
    Column("state", is_whole=True),
    Column("queue", 70),
    Column("time", 50, is_number=True),
    Column("about"),
)


def tree_lines(tree: FlowNode, room: int | None, now: datetime | None = None) -> list[str]:
    """The lines of the table, for a terminal of so many columns."""
    return [*table_lines(COLUMNS, [*_rows(tree, is_narrow(room), now or datetime.now(UTC))], room)]


def _rows(tree: FlowNode, narrow: bool, now: datetime) -> Iterator[list[str]]:
    """Depth first, without recursion: flows may be deep."""
    seen: set[int] = set()
    going: list[tuple[FlowNode | int, str, str]] = [(tree, "", "")]
    while going:
        node, mark, below = going.pop()
        if isinstance(node, int):
            yield [f"{mark}… {node:,} more", "", "", "", "", ""]
            continue
        again = id(node) in seen
        seen.add(id(node))
        yield [
            f"{mark}{node.name or '(removed)'}",
            short_id(node.id) if narrow else node.id,
            node.state,
            node.queue,
            "" if again else _time(node, now),
            "shown above" if again else about(node),
        ]
        if not again:
            parts: list[FlowNode | int] = [*node.children, *([node.hidden] if node.hidden > 0 else [])]
            marks = [("├─ ", "│  ")] * (len(parts) - 1) + [("└─ ", "   ")]
            lines = [(part, below + mark, below + rest) for part, (mark, rest) in zip(parts, marks, strict=False)]
            going += reversed(lines)


def _time(node: FlowNode, now: datetime) -> str:
    """The duration of its last attempt; of a running one, up to now."""
    job = node.snapshot
    if job is None or job.started_at is None or job.state not in ("active", *FINAL):
        return ""
    return seconds(max(0.0, ((job.finished_at or now) - job.started_at).total_seconds()))


def about(node: FlowNode) -> str:
    """The most relevant fact about a job of a flow."""
    return ", ".join(filter(None, [_fact(node), _policy(node)]))


def _policy(node: FlowNode) -> str:
    is_usual = node.policy in (None, DEFAULT_POLICY) or node.state == "completed"
    return "" if is_usual else f"{node.policy} on failure"


def _fact(node: FlowNode) -> str:
    job = node.snapshot
    match node.state:
        case "failed" | "cancelled":
            return node.reason or ""
        case "completed":
            return "" if node.result is None else shown(node.result)
        case "delayed" if job is not None:
            return f"due {age(job.due_at)}"
        case "active" if job is not None and job.progress is not None:
            return shown(job.progress)
        case "waiting-children":
            return _ended(node)
    return ""


def _ended(node: FlowNode) -> str:
    total = sum(node.counts.values())
    return f"{total - node.counts['pending']:,} of {total:,} ended" if total else ""
