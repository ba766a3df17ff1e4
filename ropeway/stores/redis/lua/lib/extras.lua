-- Rarely used fields of jobs: those of a `JobRecord` that follow its result.
--
-- A value of `extras` is a MessagePack array of these fields, as the client packed it. Only jobs that have any are in
-- it, and a flag in the run says which those are (see lib/runs.lua): so they have a run from the beginning, and other
-- jobs cost no command.
-- Uses: jobs
local TAGS, PARENTS, CHILDREN = 1, 2, 3

local function has_extras(run)
  return byte(run, STALLED) == WITH_EXTRAS
end

-- The run of a new job that has extras.
local function flagged_run(place)
  local run = blank_run(place)
  return sub(run, 1, STALLED - 1) .. char(WITH_EXTRAS) .. sub(run, STALLED + 1)
end

-- The extras of many jobs, by the place of each in `ids`; nil if none has any.
local function extras_of(q, ids, runs)
  local places, flagged, found = {}, {}, nil
  for i = 1, #ids do
    if runs[i] and has_extras(runs[i]) then
      places[#places + 1], flagged[#flagged + 1] = i, ids[i]
    end
  end
  local stored = fields_of(q.base .. ':extras', flagged)
  for i = 1, #flagged do
    found = found or {}
    found[places[i]] = stored[i]
  end
  return found
end

local function has_tag(extras, tag)
  for _, own in ipairs(extras and cmsgpack.unpack(extras)[TAGS] or {}) do
    if own == tag then
      return true
    end
  end
  return false
end

-- Writes one of the fields of a job that has extras.
local function change_extras(q, id, field, value)
  local stored = call('HGET', q.base .. ':extras', id)
  local extras = stored and cmsgpack.unpack(stored) or { {} }
  extras[PARENTS] = extras[PARENTS] or {}
  extras[field] = value
  call('HSET', q.base .. ':extras', id, cmsgpack.pack(extras))
end
