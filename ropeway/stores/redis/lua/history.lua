-- Reads what a job went through.
-- Takes the queue's base; [id].
-- Returns failed attempts (packed), log lines (packed), how many lines were written; or nil if there is no such job.
-- Uses: calls
local base, id = KEYS[1], cmsgpack.unpack(ARGV[1])[1]
if call('HEXISTS', base .. ':jobs', id) == 0 then
  return false
end
local failures = call('LRANGE', base .. ':failures:' .. id, 0, -1)
local lines = call('LRANGE', base .. ':log:' .. id, 0, -1)
return { failures, lines, tonumber(call('HGET', base .. ':past', id) or 0) }
