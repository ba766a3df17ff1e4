-- Drops the oldest entries of a queue's stream while more than so many events remain, but never the newest entry.
-- Takes the queue's base; [how many events stay].
-- Returns how many entries went.
-- Uses: queue
local q = open_queue(KEYS[1], 0)
local row, stream = q.row, q.base .. ':events'
local bound = row[EVENTS] - cmsgpack.unpack(ARGV[1])[1]
if bound <= 0 then
  return 0
end

-- Entries are numbered by their last event.
local function number_of(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

-- The number before the first event of an entry.
local function beginning_of(entry)
  local before = call('XREVRANGE', stream, '(' .. entry[1], '-', 'COUNT', 1)[1]
  if before then
    return number_of(before)
  elseif row[EVENTS_FROM] == -1 then
    -- It has one event at least.
    return number_of(entry) - 1
  end
  return row[EVENTS_FROM] >= 0 and row[EVENTS_FROM] or -1 - row[EVENTS_FROM]
end

local first, second = unpack(call('XRANGE', stream, whole(bound) .. '-0', '+', 'COUNT', 2))
if not first then
  return 0
end
local from = beginning_of(first)
if from < bound and second then
  first, from = second, number_of(first)
end
local gone = call('XTRIM', stream, 'MINID', first[1])
if gone > 0 then
  row[EVENTS_FROM], q.changed = -1 - from, true
end
close_queue(q)
return gone
