# /// script
# dependencies = ["redis[hiredis]"]
#
# [tool.benchmarks]
# title = "bare pipeline"
# family = "redis"
# role = "limit"
# durable = false
# note = "the limit: settles 100 and claims 100 per pipeline, with as many operations for each job as Ropeway's scripts"
# jobs = 30_000
# ///
"""What Redis itself can do with keys like Ropeway's: the moves and their events, but no tokens and no decisions."""

import json

from redis import Redis

from benchmarks import protocol

BATCH = 100
JOB = json.dumps(["noop", protocol.PAYLOAD])
RUN = "a" * 60
"""As long as what is kept about an attempt."""


class Bare:
    def __init__(self, place):
        self.client = Redis.from_url(place)
        self.number = self.client.hlen("jobs")

    def add(self, n=1):
        ids = [f"{number:036d}" for number in range(self.number, self.number + n)]
        self.number += n
        with self.client.pipeline() as pipe:
            pipe.hset("jobs", mapping=dict.fromkeys(ids, JOB))
            pipe.zadd("waiting", dict.fromkeys(ids, 0))
            pipe.zrange("waiting", 0, 1)
            tell(pipe, "added", ids)
            pipe.execute()

    def exchange(self, ids):
        """Claims and settles the jobs that the last exchange took from the line, and takes the next."""
        with self.client.pipeline() as pipe:
            if ids:
                pipe.hmget("jobs", ids)
                pipe.hset("runs", mapping=dict.fromkeys(ids, RUN))
                pipe.zadd("locks", dict.fromkeys(ids, 30_000))
                tell(pipe, "claimed", ids)
                pipe.hmget("runs", ids)
                pipe.hset("runs", mapping=dict.fromkeys(ids, RUN))
                pipe.zrem("locks", *ids)
                pipe.zadd("completed", dict.fromkeys(ids, 1))
                pipe.zadd("expiring", dict.fromkeys(ids, 2))
                tell(pipe, "completed", ids)
            pipe.zpopmin("waiting", BATCH)
            return [id.decode() for id, _ in pipe.execute()[-1]]


def tell(pipe, word, ids):
    """An event, and the row that holds the counters."""
    pipe.xadd("events", {word: ",".join(ids)}, maxlen=10_000)
    pipe.get("row")
    pipe.set("row", RUN)


def add_one(place, seconds):
    return protocol.repeat(seconds, Bare(place).add)


def add_bulk(place, seconds):
    bare = Bare(place)
    return protocol.repeat(seconds, lambda: bare.add(protocol.BULK), each=protocol.BULK)


def fill(place, n):
    bare = Bare(place)
    for first in range(0, n, protocol.BULK):
        bare.add(min(protocol.BULK, n - first))
    return {}


def process(place, n, seconds):
    bare = Bare(place)
    handled = protocol.Handled(n, seconds)
    running: list[str] = []
    while not handled.over:
        taken = bare.exchange(running)
        handled.more(len(running))
        running = taken
    return handled.rate()


if __name__ == "__main__":
    protocol.answer(globals())
