-- Reads the stream of a queue from a place on.
-- Takes the queue's base; [number or false, epoch or false, inclusive, limit, whether a place was given, whether to read
-- from there back to older entries].
-- Returns [id, entry] pairs, the newest place, whether entries were missed, and the number of the last event that is
-- gone, though its entry may still be there.
-- Uses: queue
local number, epoch, inclusive, limit, is_given, newest_first = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], 0)
local row, stream = q.row, q.base .. ':events'
-- A queue that is not there yet has no epoch.
local newest = q.is_new and '0-0' or whole(row[EVENTS]) .. '-' .. row[EPOCH]
local gap, from = false, newest_first and '+' or '-'
if is_given then
  local id = number and epoch and whole(number) .. '-' .. whole(epoch)
  local is_there = id and #call('XRANGE', stream, id, id) > 0
  -- Or it is where the stream begins, if that was never trimmed.
  local is_beginning = not newest_first and number and number == row[EVENTS_FROM] and not inclusive and (epoch == row[EPOCH] or epoch == 0)
  gap = not (is_there or is_beginning)
  if is_there then
    from = inclusive and not newest_first and id or '(' .. id
  end
end
local found = {}
if limit > 0 and not newest_first then
  found = call('XRANGE', stream, from, '+', 'COUNT', limit)
elseif limit > 0 and not gap then
  found = call('XREVRANGE', stream, from, '-', 'COUNT', limit)
end
for i = 1, #found do
  found[i] = { found[i][1], found[i][2][2] }
end
return { found, newest, gap and 1 or 0, row[EVENTS_FROM] < 0 and -1 - row[EVENTS_FROM] or 0 }
