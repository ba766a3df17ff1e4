"""All keys of the store: name, type and content.

All keys of a queue share the hash tag `{prefix:queue}`, so that in a cluster a queue lives in one slot and one script
may touch all of it. Scripts take the tag, which is also the key of the queue's row, and append the endings listed here.
Ids are as `ids.py` shortens them; places, orders and sequences are bytes (see lua/lib/places.lua).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...store.values import Topic

QUEUE_KEYS: Final[dict[str, str]] = {
    "": "string: the row, which holds counters and settings",
    "jobs": "hash: id to what was added (see lua/lib/places.lua)",
    "runs": "hash: id to what became of it since its first claim, or the dedupe key of a job of a bulk before that",
    "results": "hash: id to the JSON of a completion, unless it is null",
    "reasons": "hash: id to why it failed, stalled or was cancelled",
    "progress": "hash: id to the newest progress",
    "extras": "hash: id to rarely used fields, for jobs that have any (see lua/lib/extras.lua)",
    "held": "hash: dedupe key to the job that holds it (see lua/lib/holds.lua)",
    "throttled": "sorted set by the instant at which their time is over: dedupe keys that are held for a time",
    "deadlines": "sorted set by the instant at which they expire: ids of jobs that were not started",
    "stages": "hash: how the queue retains jobs in stages, if it does (see lua/lib/stages.lua)",
    "schedules": "hash: id to a schedule (see lua/lib/schedules.lua)",
    "planned": "sorted set, all scores 0: ids of schedules, in their order",
    "due": "sorted set by next_at: ids of schedules that are due then",
    "children:": "hash per parent: queue/id of each child to what is known of it (see lua/lib/families.lua)",
    "waiting:": "sorted set per job name, all scores 0: place and id, in the order of claims",
    "heads": "sorted set, all scores 0: the first place of each line, and the line's job name",
    "delayed": "sorted set by due_at: order and id",
    "waiting-children": "sorted set, all scores 0: sequence and id",
    "locks": "sorted set by lock_until: id of an active job",
    "completed": "sorted set by finished_at: sequence and id",
    "failed": "sorted set by finished_at: sequence and id",
    "cancelled": "sorted set by finished_at: sequence and id",
    "expiring:": "sorted set per final state, by expires_at: sequence and id",
    "kept:": "sorted set per final state, by finished_at: sequence and id of those that are kept for ever",
    "past": "hash: id to the number of log lines ever written, for jobs with failures, a log or many marks",
    "failures:": "list per job: failed attempts, oldest first",
    "log:": "list per job: log lines, oldest first",
    "marks": "hash: id to marks of the job (see lua/lib/stored_marks.lua)",
    "marks:": "hash per job with many marks: name to value and time",
    "awaited": "hash: id of a delayed job to the name of the mark that ends its delay",
    "events": "stream of entries",
    "revoked": "sorted set by number: revoked locks",
    "metrics": "hash: minute and metric to a number",
    "minutes": "sorted set: the minutes that have metrics",
    "parked": "sorted set by the instant at which they end: claims that wait for jobs, and the channel of each",
    "outbox": "hash, in a cluster: name to token and what queues of other slots are to get, until they have it",
    "arrived": "sorted set by instant, in a cluster: senders of what came from other slots, who may send it again",
    "delivered": "sorted set by instant, in a cluster: senders of what came from other slots and left its outbox since",
    "never": "no key is ever made of it: see cluster.py",
    "room": "no key is ever made of it: see lua/lib/room.lua",
}
"""What follows the tag and a colon."""


class Keys:
    """The keys under one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.queues: Final = f"{{{prefix}}}:queues"
        """set: the names of queues that may exist; a hint, because it is in another slot than they are"""
        self.expiring: Final = f"{{{prefix}}}:expiring"
        """sorted set by expires_at: kind and key of records that do not last"""
        self.kinds: Final = f"{{{prefix}}}:records:"
        """beginning of the hashes of records, one per kind: key to version, end and value"""
        self.life: Final = f"{{{prefix}}}:life"
        """string: a random id of the store, which is made again after somebody emptied the server"""

    def queue(self, name: str) -> str:
        return f"{{{self._prefix}:{name}}}"

    def kind(self, kind: str) -> str:
        return self.kinds + kind

    def channels(self, topic: Topic, queue: str) -> list[str]:
        """Channels of the wakes of a topic. A wake of `jobs` is one of `events` too, and sent only once."""
        topics: list[Topic] = ["events", "jobs"] if topic == "events" else [topic]
        return [f"{self.queue(queue)}:{each}" for each in topics]

    def all_channels(self, topic: Topic, queues: Iterable[str]) -> list[str]:
        return [channel for queue in queues for channel in self.channels(topic, queue)]
