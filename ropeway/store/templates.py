"""Placeholders in statements and scripts, so that a rule of the domain is written down once, in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")


def fill(text: str, values: Mapping[str, object]) -> str:
    """Replaces each `{{NAME}}` by its value, as text. Raises `KeyError` for a name without one."""
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), text)
