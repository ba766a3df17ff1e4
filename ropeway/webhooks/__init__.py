"""Webhooks: signed messages about the ends of jobs. Receivers use `verify`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .verifying import verify
else:
    from ..lazy import lazily

    __getattr__, __dir__ = lazily(__name__, {"verifying": "verify"})

__all__ = ["verify"]
