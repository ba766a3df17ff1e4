-- Gives the most urgent waiting jobs to one worker.
-- Takes the queue's base; [now, packed queue name, request].
-- Returns the jobs (packed), the clock, and when to ask again.
-- Uses: pack, queue, events, jobs, lines, records, claims
local given = cmsgpack.unpack(ARGV[1])
local q = open_queue(KEYS[1], given[1])
q.name = pack_text(given[2])
local claimed = claim(q, given[3])
close_queue(q)
return claimed
