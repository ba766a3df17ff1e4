-- Frees a dedupe key; the job that waits for the end of its holder goes on.
-- Takes the queue's base; [now, key].
-- Returns 1 if somebody held it.
-- Uses: dedupe_keys
-- In flows: flows
-- With rules: leaving, expiry
local now, key = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local stored = call('HGET', q.base .. ':held', key)
if not stored then
  return 0
end
local hold = read_hold(stored)
call('HDEL', q.base .. ':held', key)
start_next(q, hold)
if q.step then
  in_flows().conclude(q)
end
close_queue(q)
return is_over(hold, q.now) and 0 or 1
