"""Refusing work while a handler process loads the main script, which must not start its own work there."""

from __future__ import annotations

import sys
from typing import Final

from ..errors import RopewayError

LOADED_AS: Final = "__ropeway__"
"""The `__name__` under which a handler process loads a script, so that its `__main__` block is not run."""


def refuse_while_loading() -> None:
    if LOADED_AS in sys.modules:
        raise RopewayError(
            "a handler's process loads this script to find its function, and it begins its work again there: "
            'put what shall run only when it is started itself under `if __name__ == "__main__":`'
        )
