-- Drops the oldest events of a queue's stream while more than so many remain. Entries go when all of their events do:
-- of the one that is left in part, readers leave out what the row says is gone.
-- Takes the queue's base; [how many events stay, one at least; the moves that are two events of each job].
-- Returns how many entries went.
-- Uses: queue
local keep, double_moves = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], 0)
local row, stream = q.row, q.base .. ':events'
-- What happened to one job last stays whole.
local newest = keep == 1 and call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
for i = 1, newest and #double_moves or 0 do
  if string.find(newest[2][2], '["' .. double_moves[i] .. '"', 1, true) == 1 then
    keep = 2
  end
end
local last_gone = row[EVENTS] - keep
-- The number before the first event that is kept, if it is known.
local from = row[EVENTS_FROM] < 0 and -1 - row[EVENTS_FROM] or row[EVENTS_FROM]
if last_gone <= from then
  return 0
end
local gone = call('XTRIM', stream, 'MINID', whole(last_gone + 1) .. '-0')
row[EVENTS_FROM], q.changed = -1 - last_gone, true
close_queue(q)
return gone
