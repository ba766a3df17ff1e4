-- Gives the most urgent waiting jobs to one worker.
-- Takes the queue's base; [now, request].
-- Returns the clock, when to ask again, ids, values of `jobs`, and what those have that ran before; then names and texts of
-- what went into the outbox, if jobs expired.
-- Uses: room, claims
-- Rarely: promotion, repeated_claims
-- In flows: flows
-- With rules: leaving, expiry
local given = cmsgpack.unpack(ARGV[1])
local q = open_queue(KEYS[1], given[1])
local claimed = claim(q, given[2])
claimed[6] = q.posted
close_queue(q)
return claimed
