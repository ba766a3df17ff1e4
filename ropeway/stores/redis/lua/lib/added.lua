-- What a call adds to a queue, collected and then written at once.
-- Uses: announcing, lines

local function begin_adding(q)
  q.jobs, q.delayed, q.groups, q.announced_delayed = {}, {}, {}, {}
  q.number, q.waiting, q.extra, q.extras, q.runs = 0, 0, 0, {}, {}
  q.last, q.parents, q.taken, q.throttled, q.deadlines = nil, nil, nil, nil, nil
end

-- What few jobs have.
local function write_rare(q)
  call_with('HSET', q.base .. ':extras', q.extras)
  call_with('HSET', q.base .. ':runs', q.runs)
  call_with('HSET', q.base .. ':held', q.taken or {})
  call_with('ZADD', q.base .. ':throttled', q.throttled or {})
  call_with('ZADD', q.base .. ':deadlines', q.deadlines or {})
  if q.parents then
    new_flows().write_parents(q)
  end
end

-- Writes and announces what a call has added so far.
local function write_added(q)
  call_with('HSET', q.base .. ':jobs', q.jobs)
  local announced = {}
  for j, group in ipairs(q.groups) do
    put_in_line(q, group.name[1], group.members)
    announced[j] = each(group.ids, '{"name":' .. group.name[2] .. '}')
  end
  call_with('ZADD', q.base .. ':delayed', q.delayed)
  count(q, nil, WAITING, q.waiting)
  count(q, nil, DELAYED, #q.announced_delayed)
  if q.waiting > 0 then
    announce(q, '{{ADD}}', '{{WAITING}}', q.waiting, table.concat(announced, ','))
    q.has_waiting = true
  end
  if #q.announced_delayed > 0 then
    announce_all(q, '{{ADD}}', '{{DELAYED}}', q.announced_delayed)
    wake(q, 'jobs')
  end
  if q.extra > 0 then
    write_rare(q)
  end
end
