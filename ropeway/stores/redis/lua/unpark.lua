-- Takes a parked claim back.
-- Takes the queue's base; the claim: [request, channel].
-- Returns what `claim` returns: the jobs that it was given before.
-- Uses: queue, repeated_claims
-- In flows: flows
-- With rules: leaving, expiry
local request = cmsgpack.unpack(ARGV[1])[1]
local q = open_queue(KEYS[1], false)
if call('ZREM', q.base .. ':parked', ARGV[1]) == 1 then
  return { q.now, false, {}, {}, false }
end
return { q.now, false, held(q, { token = request[1] }) }
