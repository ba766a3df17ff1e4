"""Type variables for a job's result: any JSON, unless a task or a job type defines it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Known to type checkers only: a default of a type variable matters to them alone.
    from typing_extensions import TypeVar

    R = TypeVar("R", default=Any)
    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")
    R_co = TypeVar("R_co", covariant=True)

__all__ = ["R", "R_co"]
