-- Rarely used fields of jobs: those of a `JobRecord` that follow its result.
--
-- A value of `extras` is a MessagePack array of these fields, as the client packed it. Only jobs that have any are in
-- it, and a flag in the run says which those are (see lib/runs.lua): so they have a run from the beginning, and other
-- jobs cost no command. RULES is the `Extras` of the job, which scripts read but never write.
-- Uses: jobs
local TAGS, PARENTS, CHILDREN, RULES = 1, 2, 3, 4

local function has_extras(run)
  return byte(run, STALLED) == WITH_EXTRAS
end

-- The extras of many jobs, by the place of each in `ids`; nil if none has any. A folded run is replaced by a whole one, whose
-- place means nothing.
local function extras_of(q, ids, runs)
  local places, flagged, found = {}, {}, nil
  for i = 1, #ids do
    local flag = runs[i] and byte(runs[i], STALLED)
    if flag == WITH_EXTRAS then
      places[#places + 1], flagged[#flagged + 1] = i, ids[i]
    elseif flag ~= false and flag ~= WITHOUT_EXTRAS then
      found = found or {}
      found[i], runs[i] = extras_of_key(runs[i]), flagged_run(ANY_PLACE)
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

-- Whether extras have the `Extras` of the job among them.
local function has_rules(extras)
  return extras and byte(extras) - 144 >= RULES
end

-- The piece of extras that is the `Extras` of the job, as the client packed it: Lua cannot tell an empty map from a list.
local function rules_in(extras)
  local at = 1
  for _ = TAGS, CHILDREN do
    at = cmsgpack.unpack_one(extras, at)
  end
  return sub(extras, at + 1)
end

-- Writes one of the fields of a job that has extras.
local function change_extras(q, id, field, value)
  local stored = call('HGET', q.base .. ':extras', id)
  local extras = stored and cmsgpack.unpack(stored) or { {} }
  extras[PARENTS] = extras[PARENTS] or {}
  extras[field] = value
  local rules = extras[RULES] and rules_in(stored)
  if rules then
    extras[CHILDREN], extras[RULES] = extras[CHILDREN] or 0, nil
  end
  local packed = cmsgpack.pack(extras)
  call('HSET', q.base .. ':extras', id, rules and char(byte(packed) + 1) .. sub(packed, 2) .. rules or packed)
end
