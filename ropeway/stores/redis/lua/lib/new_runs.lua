-- Runs of jobs that were never claimed.
-- Uses: pack, runs

local function blank_run(place)
  return 'o' .. NEVER .. NEVER .. NEVER .. NEVER .. NONE .. NONE .. NONE .. NIL .. NIL .. place
end

-- The run of a new job that has extras.
local function flagged_run(place)
  local run = blank_run(place)
  return sub(run, 1, STALLED - 1) .. char(WITH_EXTRAS) .. sub(run, STALLED + 1)
end
