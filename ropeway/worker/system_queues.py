"""The queues of Ropeway itself, which workers serve beside their own (`companions.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ..client.queue import Queue
from ..errors import InvalidOption
from ..job.extras import Extras
from ..job.webhooks import DELIVERIES
from ..store.contract import Store
from .options import Rules

if TYPE_CHECKING:
    from .handlers import HandlerFunction


class SystemHandler(Protocol):
    """Runs the jobs of a system queue on one store."""

    @property
    def run(self) -> HandlerFunction: ...

    def close(self) -> None:
        """Called when no more of its jobs will run."""


class SystemQueue(NamedTuple):
    """A queue that any worker may serve, with slots of its own."""

    name: str
    concurrency: int
    make_handler: Callable[[Store], SystemHandler]
    is_allowed: Callable[[Rules], bool]
    """True if the worker may serve it."""
    serves: Callable[[Queue, Rules], bool]
    """True if a worker of this queue serves it from its start."""
    is_fed_by: Callable[[Extras], bool]
    """True if a job with these extras will add jobs to it: the first one that a worker claims makes it serve it."""


def _deliverer(store: Store) -> SystemHandler:
    try:
        # Most workers have no webhooks, and need no HTTP client.
        from ..webhooks.sending import Sender  # noqa: PLC0415
        from .delivering import Deliverer  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        if missing.name != "h11":
            raise
        raise InvalidOption("webhooks", 'need an HTTP client: pip install "ropeway[webhooks]"') from None
    return Deliverer(store, Sender())


WEBHOOKS: Final = SystemQueue(
    DELIVERIES,
    concurrency=50,
    make_handler=_deliverer,
    is_allowed=lambda rules: rules.webhooks is not False,
    serves=lambda queue, rules: queue.webhook is not None or rules.webhooks is True,
    # A delivery has the rule for its URL, without events.
    is_fed_by=lambda extras: extras.webhook is not None and bool(extras.webhook.events),
)

SYSTEM_QUEUES: Final[tuple[SystemQueue, ...]] = (WEBHOOKS,)
