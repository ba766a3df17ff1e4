"""Jobs in the memory of this process: the fastest store, without persistence.

It is also the reference implementation of the contract: the state machine of the tests compares other stores with it.

    MemoryStore (one handle)  ->  Step (one command, atomic)  ->  SharedState (of all handles: lock, clock, records)
                                                                    QueueData per queue
                                                                      jobs, StateIndex per state, Deadlines,
                                                                      Histories, Stream (events), Metrics

A command runs as one `Step` under the store's lock. Its changes of job records take effect at once and can be rolled
back; all other effects wait for the commit. Indexes are updated from changed records in batches, when next read.
"""

from .store import MemoryStore

__all__ = ["MemoryStore"]
