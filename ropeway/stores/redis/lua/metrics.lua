-- Reads what happened, minute by minute.
-- Takes the queue's base; [since, names of metrics].
-- Returns the minutes, and the numbers of each, in the order of the names.
-- Uses: queue
local since, metrics = unpack(cmsgpack.unpack(ARGV[1]))
local base = KEYS[1]
local row = open_queue(base, 0).row
local minutes = call('ZRANGEBYSCORE', base .. ':minutes', since, '+inf')
local numbers = {}
for i = 1, #minutes do
  local fields = {}
  for j = 1, #metrics do
    fields[j] = minutes[i] .. metrics[j]
  end
  numbers[i] = call('HMGET', base .. ':metrics', unpack(fields))
  -- Those of the newest minute are still in the row.
  for j = 1, tonumber(minutes[i]) == row[MINUTE] and #metrics or 0 do
    if metrics[j] == '{{ADDED}}' then
      numbers[i][j] = whole((numbers[i][j] or 0) + row[ADDED])
    end
  end
end
return { minutes, numbers }
