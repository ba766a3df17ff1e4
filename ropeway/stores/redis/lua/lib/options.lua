-- The few options that a store must read when a job ends without its worker; damaged ones count as none.
-- Uses: unpack, endings
local function read_stored_options(q, value, defaults)
  local _, data_at = read_text(value, 1)
  local _, options_at = read_text(value, data_at)
  local text = read_text(value, options_at)
  local ok, found = pcall(cjson.decode, text)
  local options = { attempts = defaults[1], stack_traces = defaults[2], keep = make_keep(q, defaults[3], defaults[4]) }
  if not ok or type(found) ~= 'table' then
    return options
  end
  options.attempts = tonumber(found.attempts) or options.attempts
  options.stack_traces = tonumber(found.stack_traces) or options.stack_traces
  if type(found.keep_failed) == 'table' then
    options.keep = make_keep(q, tonumber(found.keep_failed.age) or false, tonumber(found.keep_failed.count) or false)
  end
  return options
end
