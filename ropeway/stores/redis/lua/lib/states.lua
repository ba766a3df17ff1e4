-- The states of a job: the letter that answers have for each, and its counter in the queue's row.
-- Uses: row
local COUNTERS, STATE_CODES = {{COUNTERS}}, {{STATE_CODES}}
