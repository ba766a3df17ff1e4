"""The dashboard: pages rendered on the server, over the client API alone."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .application import Dashboard, dashboard
else:
    from ...lazy import lazily

    __getattr__, __dir__ = lazily(__name__, {"application": "Dashboard dashboard"})

__all__ = ["Dashboard", "dashboard"]
