# /// script
# dependencies = ["celery[redis]==5.7.0", "hiredis"]
#
# [tool.benchmarks]
# title = "Celery 5.7.0"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "solo pool, the fastest of its pools for jobs that do nothing; results ignored; acknowledges before it runs"
# jobs = 700
# ///
"""Celery's Redis transport and worker."""

import threading
from queue import SimpleQueue

from celery import Celery

from benchmarks import protocol


def nothing(data):
    pass


def open_task(place, function):
    app = Celery("bench", broker=place)
    app.conf.update(
        task_ignore_result=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_prefetch_multiplier=100,
    )
    return app, app.task(name="noop")(function)


def start(app):
    worker = app.Worker(pool="solo", loglevel="ERROR", without_gossip=True, without_mingle=True, quiet=True)
    threading.Thread(target=worker.start, daemon=True).start()


def add_one(place, seconds):
    _, noop = open_task(place, nothing)
    return protocol.repeat(seconds, lambda: noop.delay(protocol.PAYLOAD))


def fill(place, n):
    _, noop = open_task(place, nothing)
    for _ in range(n):
        noop.delay(protocol.PAYLOAD)
    return {}


def process(place, n, seconds):
    handled = protocol.Handled(n, seconds + 5)

    def noop(data):
        handled.more()

    app, _ = open_task(place, noop)
    start(app)
    return handled.wait()


def latency(place, seconds):
    samples: SimpleQueue[float] = SimpleQueue()

    def noop(sent):
        samples.put(protocol.since(sent))

    app, task = open_task(place, noop)
    start(app)
    return protocol.latencies(seconds, task.delay, samples.get)


def idle(place, seconds):
    app, _ = open_task(place, nothing)
    start(app)
    return protocol.idle_cost(seconds)


if __name__ == "__main__":
    protocol.answer(globals())
