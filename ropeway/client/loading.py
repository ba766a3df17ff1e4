"""Scripts are loaded once more in the processes of their handlers, and must not begin their work there."""

from __future__ import annotations

import sys
from typing import Final

from ..errors import RopewayError

LOADED_AS: Final = "__ropeway__"
"""The name under which a handler's process loads a script: what is under `if __name__ == "__main__"` is left out."""


def refuse_while_loading() -> None:
    if LOADED_AS in sys.modules:
        raise RopewayError(
            "a handler's process loads this script to find its function, and it begins its work again there: "
            'put what shall run only when it is started itself under `if __name__ == "__main__":`'
        )
