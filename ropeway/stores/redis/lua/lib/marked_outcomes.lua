-- Outcomes that write marks, or wait for one.
-- Uses: marking

-- Writes the marks of outcomes that will be accepted, before anything else is done about them.
local function mark_outcomes(q, s, ids, stored, markings)
  local accepted = {}
  for i = 1, #ids do
    if stored[i] and not accepted[ids[i]] and is_held(stored[i], s.packed_token(i)) then
      accepted[ids[i]] = i
    end
  end
  for i = 1, #markings do
    local number, marking = unpack(markings[i])
    local id = ids[number]
    if accepted[id] == number then
      stored[number] = mark(q, id, stored[number], marking)
    end
  end
  announce_notices(q)
end

-- A delay that a mark of this name ends. Returns the delay, none if the mark is there already, and the run.
local function await_mark(q, id, run, name, delay)
  local key = q.base .. ':marks:' .. id
  if byte(run, MADE) == WITH_MARKS and call('HEXISTS', key, name) == 1 then
    return 0, run
  end
  call('HSET', key, '', name)
  return delay, marked_run(q, id, run)
end
