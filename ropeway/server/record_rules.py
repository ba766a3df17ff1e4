"""Who may read and write which records of a store by `POST /v1/do`.

| kind | written by | read by |
|---|---|---|
| presence of workers | workers | all that follow |
| orders to workers | operators | workers, readers |
| durations of jobs | workers | workers, readers |
| sums of counters | administrators | readers |
| secrets of webhooks | operators; with allowed hosts, administrators | workers that deliver |
| disabled URLs of webhooks | workers that deliver; removed by operators | these, and readers |
| all others, such as tokens | administrators | administrators |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from ..client.timings import KIND as TIMINGS
from ..client.workers import WORKER_ORDERS, WORKER_RECORDS, WorkerInfo, WorkerOrder
from ..job.webhooks import DELIVERIES
from ..metrics.totals import KIND as TOTALS
from ..store.commands import Forget, Recall, Remember
from ..store.values import Record
from ..webhooks.records import DISABLED as DISABLED_URLS
from ..webhooks.records import SETTINGS as WEBHOOK_SETTINGS
from ..webhooks.records import WebhookSettings
from .roles import Principal, Right

WEBHOOKS: Final = (WEBHOOK_SETTINGS, DISABLED_URLS)
"""Whoever delivers reads those of all queues."""
_OF_WORKERS: Final[dict[str, type[WorkerInfo | WorkerOrder]]] = {WORKER_RECORDS: WorkerInfo, WORKER_ORDERS: WorkerOrder}
RecordCommand: TypeAlias = Remember | Recall | Forget


def rights_of_record(command: RecordCommand) -> tuple[Right, ...]:
    """The caller needs one of these."""
    kind, key = _names_of(command)
    is_read = isinstance(command, Recall)
    if kind == WORKER_RECORDS:
        return ("follow",) if is_read else ("work",)
    if kind == WORKER_ORDERS:
        return ("read", "work") if is_read else ("operate",)
    if kind == TIMINGS and key is not None:
        # Workers add to them.
        return ("read", "work") if is_read else ("work",)
    if kind == WEBHOOK_SETTINGS:
        return _rights_of_secrets(command)
    if kind == DISABLED_URLS:
        return ("operate",) if isinstance(command, Forget) else ("read",) if is_read and key is None else ("work",)
    return ("read",) if kind == TOTALS and is_read else ("administer",)


def _rights_of_secrets(command: RecordCommand) -> tuple[Right, ...]:
    if isinstance(command, Recall):
        return ("administer",) if command.key is None else ("work",)
    # Hosts of the own network are more than an operator of a queue may open.
    opens = isinstance(command, Remember) and _allows_hosts(command.record)
    return ("administer",) if opens else ("operate",)


def _allows_hosts(record: Record) -> bool:
    try:
        return bool(msgspec.json.decode(record.value, type=WebhookSettings).allow_hosts)
    except msgspec.MsgspecError:
        return True


def queues_of_record(command: RecordCommand) -> tuple[str, ...]:
    """The queues that the caller must reach."""
    kind, key = _names_of(command)
    if kind in WEBHOOKS and rights_of_record(command) == ("work",):
        return (DELIVERIES,)
    if isinstance(command, Remember) and kind == WORKER_ORDERS:
        # The worker does not obey unless these are its own.
        return (*_served(command.record),)
    return _queue_of(kind, key)


def reached_records(records: list[Record], principal: Principal) -> list[Record]:
    """Those of queues that the caller reaches; those that cannot be read are for callers that reach all."""
    if principal.queues is None:
        return records
    delivers = principal.reaches(DELIVERIES)

    def is_reached(record: Record) -> bool:
        return (delivers and record.kind in WEBHOOKS) or any(map(principal.reaches, _served(record)))

    return [*filter(is_reached, records)]


def _served(record: Record) -> Iterable[str]:
    """The queues that a record is about."""
    if record.kind not in _OF_WORKERS:
        return _queue_of(record.kind, record.key)
    try:
        return msgspec.json.decode(record.value, type=_OF_WORKERS[record.kind]).queues
    except msgspec.MsgspecError:
        return ()


def _queue_of(kind: str, key: str | None) -> tuple[str, ...]:
    """The queue that is named by the key of a record."""
    if key is None or kind not in (TIMINGS, TOTALS, *WEBHOOKS):
        return ()
    return (key.rpartition(":")[0] if kind in (TIMINGS, DISABLED_URLS) else key,)


def _names_of(command: RecordCommand) -> tuple[str, str | None]:
    """Kind and key of the records that a command is about."""
    named = command.record if isinstance(command, Remember) else command
    return named.kind, named.key
