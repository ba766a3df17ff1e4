-- Reads what happened, minute by minute.
-- Takes the queue's base; [since, names of metrics].
-- Returns the minutes, and the numbers of each, in the order of the names.
-- Uses: calls
local since, metrics = unpack(cmsgpack.unpack(ARGV[1]))
local base = KEYS[1]
local minutes = call('ZRANGEBYSCORE', base .. ':minutes', since, '+inf')
local numbers = {}
for i = 1, #minutes do
  local fields = {}
  for j = 1, #metrics do
    fields[j] = minutes[i] .. metrics[j]
  end
  numbers[i] = call('HMGET', base .. ':metrics', unpack(fields))
end
return { minutes, numbers }
