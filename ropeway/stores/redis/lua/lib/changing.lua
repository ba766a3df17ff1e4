-- Changes of a job's data, and of a run whose holder loses it.
-- Uses: jobs
local IS_FINAL = {{IS_FINAL}}

local function with_data(value, data)
  local _, data_at = read_text(value, 1)
  local _, options_at = read_text(value, data_at)
  return sub(value, 1, data_at - 1) .. pack_text(data) .. sub(value, options_at)
end

local function without_token(run)
  local _, worker = holder_of(run)
  return sub(run, 1, TOKEN - 1) .. NIL .. worker .. sub(run, -10)
end
