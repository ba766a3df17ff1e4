-- Runs of jobs that no worker holds.
-- Uses: jobs

local function blank_run(place)
  return 'o' .. NEVER .. NEVER .. NEVER .. NEVER .. NONE .. NONE .. NONE .. NIL .. NIL .. place
end

local function without_token(run)
  local _, worker = holder_of(run)
  return sub(run, 1, TOKEN - 1) .. NIL .. worker .. sub(run, -10)
end
