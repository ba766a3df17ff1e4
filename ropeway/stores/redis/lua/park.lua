-- Claims jobs; if there are none, parks the claim until some are added.
-- Takes the queue's base; the claim: [request, channel]; [for how long it is parked, or 0, whether it was parked].
-- Returns what `claim` returns.
-- Uses: room, claims
-- Rarely: promotion, repeated_claims
-- In flows: flows
-- With rules: leaving, expiry
local request, lasting, was_parked = cmsgpack.unpack(ARGV[1])[1], unpack(cmsgpack.unpack(ARGV[2]))
local q = open_queue(KEYS[1], false)
local key = q.base .. ':parked'
-- If it is gone, then it was served.
request[7] = was_parked and call('ZREM', key, ARGV[1]) == 0
local claimed = claim(q, request)
-- A queue that does not exist begins with its first job, not with a worker.
if lasting > 0 and #claimed[3] == 0 and not q.is_new then
  local ends = q.now + lasting
  call('ZADD', key, whole(ends), ARGV[1])
  q.row[PARKED_UNTIL], q.changed = math.max(q.row[PARKED_UNTIL], ends), true
end
close_queue(q)
return claimed
