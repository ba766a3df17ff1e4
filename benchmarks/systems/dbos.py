# /// script
# dependencies = ["dbos==3.3.0"]
#
# [tool.benchmarks]
# title = "DBOS 3.3.0"
# family = "sqlite"
# role = "rival"
# durable = true
# note = "runs each job as a durable workflow"
# jobs = 400
# ///
"""DBOS as it comes on SQLite, except for how often it looks for work, and for WAL, which makes it faster."""

import sqlite3
import time
from contextlib import contextmanager
from queue import SimpleQueue

from dbos import DBOS, DBOSClient
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from benchmarks import protocol

WORKER_CONCURRENCY = 100
"""Jobs at a time: the best of 1, 4, 10, 20, 50, 100, 200 and 1,000."""

MOST_WITH_STEPS = 400
"""Workflows of the measure of steps: more only take longer."""

NUMBERS = "WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < :n)"
CLONE_STATUS = (
    NUMBERS
    + """
INSERT INTO workflow_status (workflow_uuid, {columns})
SELECT :prefix || n, {columns} FROM copy, (SELECT * FROM workflow_status ORDER BY rowid DESC LIMIT 1)
"""
)
CLONE_INPUT = (
    NUMBERS
    + """
INSERT INTO workflow_input (workflow_uuid, inputs, retention_timestamp)
SELECT :prefix || n, inputs, retention_timestamp
FROM copy, (SELECT * FROM workflow_input ORDER BY rowid DESC LIMIT 1)
"""
)


def url(place):
    return place if "://" in place else f"sqlite:///{place}/dbos.db"


def nothing(data):
    pass


@contextmanager
def running(place, function=nothing, *, queues=()):
    """An application that works on `queues`; gives a function that adds."""
    if "://" not in place:
        with sqlite3.connect(f"{place}/dbos.db") as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    DBOS(
        config={
            "name": "bench",
            "application_version": "1",
            "system_database_url": url(place),
            "log_level": "ERROR",
        }
    )
    workflow = DBOS.workflow(name="noop")(function)
    DBOS.listen_queues(queues)
    DBOS.launch()
    queue = DBOS.register_queue("bench", worker_concurrency=WORKER_CONCURRENCY, polling_interval_sec=protocol.POLL)
    yield lambda data: queue.enqueue(workflow, data)
    DBOS.destroy()


def add_one(place, seconds):
    with running(place) as add:
        return protocol.repeat(seconds, lambda: add(protocol.PAYLOAD))


def add_bulk(place, seconds):
    options = {"queue_name": "bench", "workflow_name": "noop"}
    with running(place):
        client, engine = DBOSClient(system_database_url=url(place)), create_engine(url(place))

        def add():
            with engine.begin() as transaction:
                for _ in range(protocol.BULK):
                    client.enqueue_in_transaction(transaction, options, protocol.PAYLOAD)

        return protocol.repeat(seconds, add, each=protocol.BULK)


def fill(place, n):
    with running(place) as add:
        add(protocol.PAYLOAD)
    with sqlite3.connect(f"{place}/dbos.db") as connection:
        found = [name for _, name, *_ in connection.execute("PRAGMA table_info(workflow_status)")]
        columns = ", ".join(name for name in found if name != "workflow_uuid")
        copies = {"n": n - 1, "prefix": f"{time.time_ns()}-"}
        connection.execute(CLONE_STATUS.format(columns=columns), copies)
        connection.execute(CLONE_INPUT, copies)
    return {}


def settled(place):
    table = "dbos.workflow_status" if "://" in place else "workflow_status"
    engine = create_engine(url(place).replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    with engine.connect() as connection:
        return connection.execute(text(f"SELECT count(*) FROM {table} WHERE completed_at IS NOT NULL")).scalar()


def process(place, n, seconds):
    before = settled(place)
    with running(place, queues=["bench"]):
        watch = protocol.Stopwatch(seconds)
        while watch.count < n and not watch.over:
            time.sleep(0.02)
            watch.count = settled(place) - before
        return watch.rate()


def run_steps(place, n, steps, seconds):
    """Workflows of so many steps, for a time at most; the rate is that of steps."""
    step = DBOS.step(name="no_step")(no_step)

    def handler(_):
        for number in range(steps):
            step(number)

    with running(place, handler) as add:
        for _ in range(min(n, MOST_WITH_STEPS)):
            add(protocol.PAYLOAD)
    with running(place, handler, queues=["bench"]):
        watch = protocol.Stopwatch(seconds)
        while watch.count < min(n, MOST_WITH_STEPS) and not watch.over:
            time.sleep(0.02)
            watch.count = settled(place)
        answer = watch.rate()
        return {"per_second": steps * answer["per_second"], "cpu_us": answer["cpu_us"] / steps}


def no_step(number):
    return number


def latency(place, seconds):
    samples: SimpleQueue[float] = SimpleQueue()
    with running(place, lambda sent: samples.put(protocol.since(sent)), queues=["bench"]) as add:
        return protocol.latencies(seconds, add, samples.get)


def latency_apart(place, seconds):
    with running(place) as add, protocol.beside("listen", place=place) as sample:
        return protocol.latencies(seconds, add, sample)


def listen(place):
    with running(place, lambda sent: protocol.tell(protocol.since(sent)), queues=["bench"]):
        protocol.tell("ready")
        time.sleep(600)


def idle(place, seconds):
    with running(place, queues=["bench"]):
        return protocol.idle_cost(seconds)


if __name__ == "__main__":
    protocol.answer(globals())
