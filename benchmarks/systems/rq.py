# /// script
# dependencies = ["rq==2.12.0", "hiredis"]
#
# [tool.benchmarks]
# title = "RQ 2.12.0"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "SimpleWorker, which runs jobs in its own process; the default forks for each and is a third as fast"
# jobs = 250
# ///
"""RQ with the fastest of its workers."""

import threading
from queue import SimpleQueue

from redis import Redis
from rq import Queue, SimpleWorker
from rq.timeouts import TimerDeathPenalty

from benchmarks import protocol

handled = protocol.Handled(1, 0)
samples: SimpleQueue[float] = SimpleQueue()


class ThreadWorker(SimpleWorker):
    """Can be run beside others in a process."""

    death_penalty_class = TimerDeathPenalty

    def _install_signal_handlers(self):
        pass


def noop(data):
    handled.more()


def sample(sent):
    samples.put(protocol.since(sent))


def open_queue(place):
    return Queue("bench", connection=Redis.from_url(place))


def start(place):
    worker = ThreadWorker([open_queue(place)], connection=Redis.from_url(place))
    threading.Thread(target=worker.work, kwargs={"logging_level": "ERROR"}, daemon=True).start()


def add_one(place, seconds):
    queue = open_queue(place)
    return protocol.repeat(seconds, lambda: queue.enqueue(noop, protocol.PAYLOAD))


def add_bulk(place, seconds):
    queue = open_queue(place)
    jobs = [Queue.prepare_data(noop, (protocol.PAYLOAD,)) for _ in range(protocol.BULK)]
    return protocol.repeat(seconds, lambda: queue.enqueue_many(jobs), each=protocol.BULK)


def fill(place, n):
    queue = open_queue(place)
    for _ in range(0, n, protocol.BULK):
        queue.enqueue_many([Queue.prepare_data(noop, (protocol.PAYLOAD,)) for _ in range(min(n, protocol.BULK))])
    return {}


def process(place, n, seconds):
    global handled  # noqa: PLW0603 - jobs name their function, and share nothing else with it
    handled = protocol.Handled(n, seconds)
    start(place)
    return handled.wait()


def latency(place, seconds):
    queue = open_queue(place)
    start(place)
    return protocol.latencies(seconds, lambda sent: queue.enqueue(sample, sent), samples.get)


def idle(place, seconds):
    start(place)
    return protocol.idle_cost(seconds)


if __name__ == "__main__":
    # Jobs name their function by its module, so this file must be known by its own.
    from benchmarks.systems import rq  # noqa: PLW0406

    protocol.answer(vars(rq))
