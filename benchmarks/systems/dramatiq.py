# /// script
# dependencies = ["dramatiq[redis]==2.2.1", "hiredis"]
#
# [tool.benchmarks]
# title = "Dramatiq 2.2.1"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "8 threads, its default, in one process"
# jobs = 1_500
# ///
"""Dramatiq's Redis broker and worker."""

from queue import SimpleQueue

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks import protocol

THREADS = 8


def nothing(data):
    pass


def open_actor(place, function):
    broker = RedisBroker(url=place)
    return broker, dramatiq.actor(function, actor_name="noop", queue_name="bench", broker=broker)


def start(broker):
    dramatiq.Worker(broker, worker_threads=THREADS, worker_timeout=100).start()


def add_one(place, seconds):
    _, noop = open_actor(place, nothing)
    return protocol.repeat(seconds, lambda: noop.send(protocol.PAYLOAD))


def fill(place, n):
    _, noop = open_actor(place, nothing)
    for _ in range(n):
        noop.send(protocol.PAYLOAD)
    return {}


def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)
    broker, _ = open_actor(place, lambda _: handled.more())
    start(broker)
    return handled.wait()


def latency(place, seconds):
    samples: SimpleQueue[float] = SimpleQueue()
    broker, noop = open_actor(place, lambda sent: samples.put(protocol.since(sent)))
    start(broker)
    return protocol.latencies(seconds, noop.send, samples.get)


def idle(place, seconds):
    broker, _ = open_actor(place, nothing)
    start(broker)
    return protocol.idle_cost(seconds)


if __name__ == "__main__":
    protocol.answer(globals())
