"""The type of a job's result, as type checkers see it: any JSON, unless a task or a job type says more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Type checkers bring it along; a default has a meaning for them alone.
    from typing_extensions import TypeVar

    R = TypeVar("R", default=Any)
    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")
    R_co = TypeVar("R_co", covariant=True)

__all__ = ["R", "R_co"]
