-- The fields of a job that is to be added. RARE: the number of its extras and parents in a list, for siblings have the
-- same: pairs of the extras as they are stored, and for each parent the number of its queue in the call, or 0, its id and
-- the name of its queue. LINKS: for each child its key (see lib/families.lua) and its policy, in turn.
local ID, LENGTH, NAME, QUEUE, PRIORITY, LIFO, DELAY, DUE_AT, RARE, LINKS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
