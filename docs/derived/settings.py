"""Every option with its default, and every limit, as the code has them."""

from __future__ import annotations

from typing import Any

from ropeway.client.new_jobs import PROGRESS_LIMIT
from ropeway.client.schedule import ScheduleOptions
from ropeway.job import codec, durations, failure, names, numbers, options
from ropeway.job.backoff import LONGEST_DELAY
from ropeway.job.dedupe import LONGEST_KEY
from ropeway.job.events import EVENTS_KEPT
from ropeway.job.options import JobOptions, StoredOptions
from ropeway.job.retention import KEEP_COMPLETED, KEEP_FAILED, Retention
from ropeway.job.schedules import HISTORY, MOST_MISSED, SHORTEST, Rule, ScheduleState, Template
from ropeway.store.url import DEFAULT_URL
from ropeway.store.values import BATCH, StallRules
from ropeway.stores.sqlite.target import Target
from ropeway.worker.job import LOG_LINE_LIMIT
from ropeway.worker.options import MOST_CONCURRENCY, SHORTEST_LOCK, Rules, WorkerOptions

from .source import attribute_texts
from .tables import code, duration, size, table

HEAD = ["option", "default", "means"]


def job_options() -> str:
    stored = StoredOptions()
    defaults = {
        "id": "a UUIDv7",
        "delay": "none",
        "priority": code(0),
        "lifo": code(False),
        "attempts": code(stored.attempts),
        "backoff": "none: at once",
        "timeout": "none",
        "remove_on_complete": _kept(KEEP_COMPLETED),
        "remove_on_fail": _kept(KEEP_FAILED),
        "tags": "none",
        "max_starts": "no limit",
        "keep_logs": f"{stored.keep_logs:,}",
        "stack_traces": f"{stored.stack_traces}",
        "expires": "never",
        "dead_letter": "none",
        "dedupe": "none",
        "webhook": "that of the queue",
        "version": code(stored.version),
    }
    return _options(JobOptions, defaults)


def schedule_options() -> str:
    state = ScheduleState(Rule(), Template(""))
    defaults = {
        "cron": "one of the two",
        "tz": code(state.rule.tz),
        "every": "one of the two",
        "offset": "none",
        "start": "at once",
        "end": "never",
        "limit": "none",
        "overlap": code(f'"{state.overlap}"'),
        "missed": code(f'"{state.missed}"'),
        "immediately": code(False),
    }
    return _options(ScheduleOptions, defaults)


def worker_options() -> str:
    rules, stalls = Rules(), StallRules()
    defaults = {
        "concurrency": code(rules.concurrency),
        "max_global_concurrency": "as the queue has it",
        "lock_duration": duration(rules.lock),
        "stalled_interval": duration(rules.stalled_interval * 1000),
        "max_stalled_count": code(stalls.max_stalled_count),
        "on_stalled": code(f'"{stalls.on_stalled}"'),
        "stall_counts_as_attempt": code(stalls.counts_as_attempt),
        "on_invalid": code(f'"{rules.on_invalid}"'),
        "remove_on_complete": "as of a job",
        "remove_on_fail": "as of a job",
        "grace": duration(rules.grace * 1000),
        "cancel_grace": duration(rules.cancel_grace * 1000),
        "max_process_jobs": "no limit",
        "max_process_memory": "no limit",
        "max_leaked": "no limit",
        "classify": "every error may be retried",
        "backoffs": "none",
        "on_stale": "none",
        "on_delete": "none",
        "name": "host, process and a random part",
        "webhooks": "if needed",
    }
    return _options(WorkerOptions, defaults)


def queue_options() -> str:
    return table(
        HEAD,
        [
            ["`url`", f"`$ROPEWAY_URL`, or {code(DEFAULT_URL)}", "where the jobs live"],
            [
                "`store`",
                "one of its own",
                "a store from `connect(url)`, shared with other queues; then leave out `url`",
            ],
            ["`size_limit`", size(codec.SIZE_LIMIT), "the most bytes that data or a result may take as JSON"],
            ["`classify`", "none", "as of a worker, for this queue's jobs; that of the worker is asked first"],
            ["`on_stalled`", "`requeue`", "as of a worker, for this queue's jobs; that of the worker counts more"],
            ["any job option", "as below", "for the jobs added through this object; not `id` and `delay`"],
        ],
    )


def sqlite_options() -> str:
    target = Target("", "")
    durability, network = ("full" if target.is_durable else "fast"), int(target.allows_network)
    return table(
        HEAD,
        [
            ["`durability`", code(durability), "`full`: on the disk before it is acknowledged; `fast`: soon after"],
            ["`allow_network`", code(network), "`1` allows a network file system, for one machine only"],
        ],
    )


def limits() -> str:
    return table(
        ["what", "limit"],
        [
            [
                "data or result, as JSON",
                f"{size(codec.SIZE_LIMIT)}; `size_limit` up to {size(codec.LARGEST_SIZE_LIMIT)}",
            ],
            ["nesting of JSON, digits of a number", f"{codec.DEPTH_LIMIT}, {codec.DIGIT_LIMIT:,}"],
            ["progress, as JSON", size(PROGRESS_LIMIT)],
            ["a log line", f"{LOG_LINE_LIMIT:,} characters"],
            ["a failure's reason, its stack trace", f"{failure.REASON_LIMIT:,} bytes, {size(failure.TRACE_LIMIT)}"],
            ["queue name", "128 letters, digits, `.`, `_`, `-`"],
            ["job id", "255 letters, digits, `.`, `_`, `:`, `-`"],
            ["job name", f"{names.LONGEST_JOB_NAME} characters, no control characters"],
            ["dedupe key", f"{LONGEST_KEY} characters, no control characters"],
            ["schedule id", f"{names.LONGEST_SCHEDULE_ID} letters, digits, `.`, `_`, `:`, `-`"],
            ["`every` of a schedule", f"at least {duration(SHORTEST)}"],
            ['history of a schedule, ticks made up for by `missed="all"`', f"{HISTORY}, {MOST_MISSED}"],
            ["priority", f"{numbers.MOST_URGENT:,} to {numbers.LEAST_URGENT:,}"],
            ["attempts, starts", f"{options.MOST_ATTEMPTS:,}"],
            ["a duration", f"{durations.LONGEST // (366 * 86_400_000)} years"],
            [
                "a delay that grows by backoff, or is answered by a function",
                f"{duration(LONGEST_DELAY)}; `max_delay` sets another for the first",
            ],
            ["a page of `find`, a claim by hand", f"{BATCH:,} jobs"],
            ["events kept", f"about {EVENTS_KEPT:,} a queue"],
            ["concurrency of a worker", f"{MOST_CONCURRENCY:,}"],
            ["lock duration", f"at least {duration(SHORTEST_LOCK)}"],
        ],
    )


def _options(options_type: Any, defaults: dict[str, str]) -> str:
    texts = attribute_texts(options_type)
    return table(HEAD, [[code(option), defaults[option], texts[option]] for option in options_type.__annotations__])


def _kept(keep: Retention) -> str:
    parts = [duration(keep.age)] if keep.age is not None else []
    if keep.count is not None:
        parts.append(f"at most {keep.count:,}")
    return "kept " + ", ".join(parts)
