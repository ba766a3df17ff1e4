-- Takes a standing claim back.
-- Takes the queue's base; the claim as it stands: [request, channel].
-- Returns what `claim` returns: the jobs that it was given before.
-- Uses: queue, holding
local request = cmsgpack.unpack(ARGV[1])[1]
local q = open_queue(KEYS[1], false)
if call('ZREM', q.base .. ':standing', ARGV[1]) == 1 then
  return { q.now, false, {}, {}, false }
end
return { q.now, false, held(q, { token = request[1] }) }
