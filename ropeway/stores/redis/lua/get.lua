-- Reads jobs by id.
-- Takes the queue's base; [queue name, ids].
-- Returns the jobs (packed), with nil for those that are not there.
-- Uses: reading
-- Rarely: marks
local queue, ids = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], 0)
q.name = pack_text(queue)
local records = records_of(q, ids, true)
for i = 1, #ids do
  records[i] = records[i] or NIL
end
return pack_list(records)
