-- Runs of jobs that were never claimed.
--
-- Most of those that have extras have nothing but a dedupe key in the default mode. If they were added in bulk, and the key
-- is ASCII, it stands in place of a run and of extras ("folded") until the job is claimed or changed. The third byte of a
-- run is 0, because of the time that begins there; that of a key is not.
-- Uses: pack, runs

local function blank_run(place)
  return 'o' .. NEVER .. NEVER .. NEVER .. NEVER .. NONE .. NONE .. NONE .. NIL .. NIL .. place
end

-- The run of a new job that has extras.
local function flagged_run(place)
  local run = blank_run(place)
  return sub(run, 1, STALLED - 1) .. char(WITH_EXTRAS) .. sub(run, STALLED + 1)
end

local function is_folded(run)
  return byte(run, 3) ~= 0
end

local before_key

local function extras_of_key(key)
  before_key = before_key or char({{EXTRAS_OF_KEY}})
  return before_key .. pack_text(key)
end

-- Writes the run and the extras of a job that had its key in their place; returns the run.
local function unfold(q, id, key, place)
  local run = flagged_run(place)
  call('HSET', q.base .. ':runs', id, run)
  call('HSET', q.base .. ':extras', id, extras_of_key(key))
  return run
end
