-- Takes a parked claim back, for whoever knows its token, and ends the wait of its worker.
-- Takes the queue's base; [the claim's token].
-- Returns what `claim` returns: the jobs that it was given before.
-- Uses: queue, repeated_claims
local token = cmsgpack.unpack(ARGV[1])[1]
local q = open_queue(KEYS[1], false)
local key = q.base .. ':parked'
local parked = call('ZRANGE', key, 0, -1)
for i = 1, #parked do
  local request, channel = unpack(cmsgpack.unpack(parked[i]))
  if request[1] == token then
    call('ZREM', key, parked[i])
    call('PUBLISH', channel, 'withdrawn ' .. token)
  end
end
return { q.now, false, held(q, { token = token }) }
