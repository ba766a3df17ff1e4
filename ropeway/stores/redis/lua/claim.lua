-- Gives the most urgent waiting jobs to one worker.
-- Takes the queue's base; [now, request].
-- Returns the clock, when to ask again, ids, values of `jobs`, and what those have that ran before.
-- Uses: room, claims
-- Rarely: promotion, repeated_claims
-- In flows: flows
local given = cmsgpack.unpack(ARGV[1])
local q = open_queue(KEYS[1], given[1])
local claimed = claim(q, given[2])
close_queue(q)
return claimed
