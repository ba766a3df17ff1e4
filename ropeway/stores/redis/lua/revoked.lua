-- Reads the locks that were revoked after a place.
-- Takes the queue's base; [number or false].
-- Returns the locks (packed), and the newest place.
-- Uses: queue
local number = cmsgpack.unpack(ARGV[1])[1]
local q = open_queue(KEYS[1], 0)
if not number then
  return { {}, whole(q.row[REVOKED]) }
end
return { call('ZRANGEBYSCORE', q.base .. ':revoked', '(' .. whole(number), '+inf'), whole(q.row[REVOKED]) }
