"""The maintenance services of a worker, one file each.

They run in a dedicated thread (`thread.py`), which no handler can block. It has its own event loop and its own store
handles, so locks are renewed and stalled jobs recovered whatever the application's loop does:

    per queue      Renewer        extends the locks of jobs that run or wait to be settled
                   Ticker         promotes due jobs, recovers stalled ones, applies retention
                   Revocations    stops handlers whose job was cancelled or removed
                   Census         reports waiting job names that have no handler here
    per store      Presence       keeps the worker's record for `queue.workers()`
    per worker     LoopWatch      notices that the application's loop is blocked; then `Rescue` acts in its place
"""
