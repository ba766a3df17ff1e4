-- Claims, or leaves the claim standing until jobs come.
-- Takes the queue's base; the claim as it stands: [request, channel]; [for how long, or 0, whether it stood before].
-- Returns what `claim` returns.
-- Uses: room, claims
-- Rarely: promotion, holding
local request, lasting, stood = cmsgpack.unpack(ARGV[1])[1], unpack(cmsgpack.unpack(ARGV[2]))
local q = open_queue(KEYS[1], false)
local key = q.base .. ':standing'
-- If it is gone, then it was served.
request[7] = stood and call('ZREM', key, ARGV[1]) == 0
local claimed = claim(q, request)
-- A queue that does not exist begins with its first job, not with a worker.
if lasting > 0 and #claimed[3] == 0 and not q.is_new then
  local ends = q.now + lasting
  call('ZADD', key, whole(ends), ARGV[1])
  q.row[STANDING], q.changed = math.max(q.row[STANDING], ends), true
end
close_queue(q)
return claimed
