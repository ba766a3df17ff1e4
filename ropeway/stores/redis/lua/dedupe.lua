-- Reads who holds a dedupe key.
-- Takes the queue's base; [now, key].
-- Returns the id of the job, until when it is held or 0, and the job that waits for its end or an empty text; nothing if it
-- is free.
-- Uses: queue, holds
local now, key = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local stored = call('HGET', q.base .. ':held', key)
local hold = stored and read_hold(stored)
return hold and not is_over(hold, q.now) and { hold.id, hold.till, hold.next or '' } or {}
