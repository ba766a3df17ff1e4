"""The examples at the end of a command's help."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """The mark on top keeps click from rewrapping the lines."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
