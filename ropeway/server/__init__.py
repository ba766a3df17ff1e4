"""The HTTP server: a broker for programs of any language, and for stores and workers elsewhere."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .application import Broker, broker
    from .limits import Limits
else:
    from ..lazy import lazily

    __getattr__, __dir__ = lazily(__name__, {"application": "Broker broker", "limits": "Limits"})

__all__ = ["Broker", "Limits", "broker"]
