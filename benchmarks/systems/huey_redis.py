# /// script
# dependencies = ["huey==3.5.4", "redis[hiredis]"]
#
# [tool.benchmarks]
# title = "huey 3.5.4"
# family = "redis"
# role = "rival"
# durable = false
# backlogs = false
# note = "deletes a job as it claims it: a crash loses the job"
# jobs = 2_500
# ///
"""RedisHuey, blocking, with its own consumer."""

from contextlib import contextmanager
from queue import SimpleQueue

from huey import RedisHuey
from huey.consumer import Consumer

from benchmarks import protocol

WORKERS = 4


def nothing(data):
    pass


def open_task(place, function):
    huey = RedisHuey("bench", url=place, results=False)
    return huey, huey.task(name="noop")(function)


@contextmanager
def working(huey):
    consumer = Consumer(huey, workers=WORKERS, periodic=False)
    consumer.start()
    yield
    consumer.stop(graceful=True)


def add_one(place, seconds):
    _, noop = open_task(place, nothing)
    return protocol.repeat(seconds, lambda: noop(protocol.PAYLOAD))


def fill(place, n):
    _, noop = open_task(place, nothing)
    for _ in range(n):
        noop(protocol.PAYLOAD)
    return {}


def process(place, n, seconds):
    handled = protocol.Handled(n, seconds)
    huey, _ = open_task(place, lambda _: handled.more())
    with working(huey):
        return handled.wait()


def latency(place, seconds):
    samples: SimpleQueue[float] = SimpleQueue()
    huey, noop = open_task(place, lambda sent: samples.put(protocol.since(sent)))
    with working(huey):
        return protocol.latencies(seconds, noop, samples.get)


def idle(place, seconds):
    huey, _ = open_task(place, nothing)
    with working(huey):
        return protocol.idle_cost(seconds)


if __name__ == "__main__":
    protocol.answer(globals())
