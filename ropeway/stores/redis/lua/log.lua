-- Reads a page of a job's log.
-- Takes the queue's base; [id, number of the line before the page or false, limit, whether the newest come first].
-- Returns the lines (packed, oldest first), the number of the newest line ever written, and that of the page's last
-- line if more come after it, else false; or nil if there is no such job.
-- Uses: calls
local id, after, limit, newest_first = unpack(cmsgpack.unpack(ARGV[1]))
local base = KEYS[1]
if call('HEXISTS', base .. ':jobs', id) == 0 then
  return false
end
local log = base .. ':log:' .. id
local kept, written = call('LLEN', log), tonumber(call('HGET', base .. ':past', id) or 0)
if not written then
  error('Bad data format')
end
local newest = math.max(written, kept)
local oldest = newest - kept + 1
local from, to, last
if newest_first then
  to = after and math.min(after - 1, newest) or newest
  from = math.max(to - limit + 1, oldest)
  last = from > oldest and from
else
  from = after and math.max(after + 1, oldest) or oldest
  to = math.min(from + limit - 1, newest)
  last = to < newest and to
end
-- Places before the first of a list would count from its end.
if from > to then
  return { {}, newest, false }
end
return { call('LRANGE', log, whole(from - oldest), whole(to - oldest)), newest, last }
