"""Templates of scripts and statements: `{{NAME}}` stands for a value that Python states.

So that a rule which a store keeps in another language is still written once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")


def fill(text: str, values: Mapping[str, object]) -> str:
    """Puts `str(values["NAME"])` where the text says `{{NAME}}`; raises `LookupError` for a name without a value."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise LookupError(f"no value for {found[0]}")
        return str(values[found[1]])

    return _PLACEHOLDER.sub(value, text)
