"""The metrics: names, kinds and what they mean. docs/metrics.md lists them."""

from __future__ import annotations

from typing import Final

from ..store.values import Metric
from .page import Family

COUNTED: Final = Metric.__struct_fields__[1:]
"""What stores count per minute."""

_DID: Final = {
    "added": "Jobs added.",
    "completed": "Jobs completed.",
    "failed": "Jobs failed for good.",
    "retried": "Failed attempts that were followed by another one.",
    "stalled": "Jobs whose worker was lost.",
    "cancelled": "Jobs cancelled.",
    "removed": "Jobs removed, by retention or by a call.",
}

TOTALS: Final = {kind: Family(f"ropeway_jobs_{kind}_total", "counter", _DID[kind]) for kind in COUNTED}
JOBS: Final = Family("ropeway_jobs", "gauge", "Jobs by state.")
OLDEST: Final = Family(
    "ropeway_oldest_waiting_age_seconds",
    "gauge",
    "How long the older of the first and the last waiting job has waited; 0 if none waits.",
)
PAUSED: Final = Family("ropeway_queue_paused", "gauge", "1 if the queue is paused.")
WORKERS: Final = Family("ropeway_workers", "gauge", "Live workers of the queue, also those over HTTP.")
SLOTS: Final = Family(
    "ropeway_worker_slots", "gauge", "Slots of the workers of the queue; those of several queues count in each."
)
BUSY: Final = Family(
    "ropeway_worker_slots_busy", "gauge", "Slots of these workers that run a job, by the last report of each."
)
WAIT: Final = Family(
    "ropeway_job_wait_seconds", "histogram", "From when a job could be run to the start of its first attempt."
)
RUN: Final = Family("ropeway_job_run_seconds", "histogram", "Duration of each attempt.")
SCHEDULES: Final = Family("ropeway_schedules", "gauge", "Schedules of the queue, at most 1000.")
LAG: Final = Family(
    "ropeway_schedule_lag_seconds", "gauge", "How late the most late tick of a schedule is; 0 if none is due."
)
DEAD_LETTERS: Final = Family(
    "ropeway_dead_letters_waiting", "gauge", "Waiting jobs of a queue whose next job is a dead letter."
)
DELIVERIES_WAITING: Final = Family(
    "ropeway_webhook_deliveries_waiting", "gauge", "Deliveries of webhooks that are not made yet."
)
DELIVERIES_FAILED: Final = Family("ropeway_webhook_deliveries_failed", "gauge", "Deliveries that were given up.")
LEFT_OUT: Final = Family("ropeway_queues_left_out", "gauge", "Queues without samples, because there are too many.")
READ: Final = Family("ropeway_read_seconds", "gauge", "How long the store was read for these numbers.")
BUILD: Final = Family("ropeway_build_info", "gauge", "The version of Ropeway, as a label.")

INSIDE: Final = Family("ropeway_server_requests", "gauge", "Requests that the server carries out now.")
WAITING: Final = Family("ropeway_server_requests_waiting", "gauge", "Requests that wait for a job or an event.")
REFUSED: Final = Family(
    "ropeway_server_requests_refused_total", "counter", "Requests refused because of too much load."
)
STARTED: Final = Family("process_start_time_seconds", "gauge", "When the process started, in Unix time.")
PROCESSOR: Final = Family("process_cpu_seconds_total", "counter", "Processor time of the process, user and system.")
MEMORY: Final = Family("process_resident_memory_bytes", "gauge", "Resident memory of the process.")
FILES: Final = Family("process_open_fds", "gauge", "Open file descriptors of the process.")

STORE: Final = (
    *(*TOTALS.values(), JOBS, OLDEST, PAUSED, WORKERS, SLOTS, BUSY, WAIT, RUN, SCHEDULES, LAG, DEAD_LETTERS),
    *(DELIVERIES_WAITING, DELIVERIES_FAILED, LEFT_OUT, READ, BUILD),
)
"""Of every page."""
SERVER: Final = (INSIDE, WAITING, REFUSED, STARTED, PROCESSOR, MEMORY, FILES)
"""Of `/metrics` of the server, beside those."""
