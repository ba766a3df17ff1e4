-- Marks that end the delay of a job: see lib/stored_marks.lua.
-- Uses: marking

-- A delay that a mark of this name ends. Returns the delay, none if the mark is there already, and the run.
local function await_mark(q, id, run, name, delay)
  local stored = stored_marks(q, { id }, { run })[1]
  if stored == '' then
    if call('HEXISTS', q.base .. ':marks:' .. id, name) == 1 then
      return 0, run
    end
  elseif stored then
    local _, names = split_marks(stored)
    for i = 1, #names do
      if names[i] == name then
        return 0, run
      end
    end
  end
  call('HSET', q.base .. ':awaited', id, name)
  return delay, marked_run(run)
end

-- Whether these marks end the delay of a job.
local function is_awaited(q, id, marking)
  local name = call('HGET', q.base .. ':awaited', id)
  for i = 1, name and #marking[MARKS] or 0, 2 do
    if marking[MARKS][i] == name then
      return true
    end
  end
  return false
end
