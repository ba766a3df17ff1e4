"""A flow as JSON."""

from __future__ import annotations

from typing import Any

from ...client.flow_tree import FlowNode


def document_of(tree: FlowNode) -> dict[str, Any]:
    """A flat list, the root first: a job with two parents is in it once, and depth is no limit."""
    return {"root": _key(tree), "jobs": [_job(node) for node in tree.walk()]}


def _job(node: FlowNode) -> dict[str, Any]:
    job = node.snapshot
    return {
        **_key(node),
        "name": node.name,
        "state": node.state,
        "removed": job is None,
        "created_at": job and job.created_at,
        "started_at": job and job.started_at,
        "finished_at": job and job.finished_at,
        "result": node.result,
        "reason": node.reason,
        "on_failure": node.policy,
        "counts": node.counts,
        "children": [_key(child) for child in node.children],
        "hidden": node.hidden,
    }


def _key(node: FlowNode) -> dict[str, str]:
    return {"queue": node.queue, "id": node.id}
