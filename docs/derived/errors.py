"""The tree of errors, as `ropeway/errors.py` draws it."""

from __future__ import annotations

import textwrap

import ropeway.errors


def tree() -> str:
    drawn = [line for line in (ropeway.errors.__doc__ or "").splitlines() if line.startswith("    ")]
    return f"```text\n{textwrap.dedent(chr(10).join(drawn))}\n```"
