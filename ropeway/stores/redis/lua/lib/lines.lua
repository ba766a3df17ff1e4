-- Waiting jobs stand in one line per job name; `heads` holds the place of each line's first job.
local function line_of(q, name)
  return q.base .. ':waiting:' .. name
end

local function first_in(line)
  return call('ZRANGE', line, 0, 0)[1]
end

-- Call it after a line was changed, with the member that was first before.
local function set_head(q, name, line, before)
  local after = first_in(line)
  if after ~= before then
    if before then
      call('ZREM', q.base .. ':heads', sub(before, 1, 20) .. name)
    end
    if after then
      call('ZADD', q.base .. ':heads', 0, sub(after, 1, 20) .. name)
    end
  end
end

-- `members` are places with ids.
local function put_in_line(q, name, members)
  local line, arguments = line_of(q, name), {}
  local before = first_in(line)
  for i = 1, #members do
    arguments[2 * i - 1], arguments[2 * i] = '0', members[i]
  end
  call_with('ZADD', line, arguments)
  set_head(q, name, line, before)
end

local function take_out_of_line(q, name, members)
  local line = line_of(q, name)
  local before = first_in(line)
  call_with('ZREM', line, members)
  set_head(q, name, line, before)
end

local function put_all_in_line(q, by_name)
  for name, members in pairs(by_name) do
    put_in_line(q, name, members)
  end
end

local function add_to(groups, key, item)
  local group = groups[key]
  if group then
    group[#group + 1] = item
  else
    groups[key] = { item }
  end
end

-- Takes a job out of wherever its state keeps it.
local function leave(q, job)
  local state = job.state
  if state == 'waiting' then
    take_out_of_line(q, name_of(job.value), { job.place .. job.id })
  elseif state == 'delayed' then
    call('ZREM', q.base .. ':delayed', sub(job.place, 7) .. job.id)
  elseif state == 'active' then
    call('ZREM', q.base .. ':locks', job.id)
  else
    local member = sequence_of(job.place) .. job.id
    call('ZREM', q.base .. ':' .. state, member)
    call('ZREM', q.base .. ':expiring', LETTERS[state] .. member)
  end
end

local function promote(q, members)
  local ids, by_name, told = {}, {}, {}
  for i = 1, #members do
    ids[i] = sub(members[i], 15)
  end
  local values = fields_of(q.base .. ':jobs', ids)
  for i = 1, #members do
    if values[i] then
      add_to(by_name, name_of(values[i]), place_of(values[i]) .. ids[i])
      told[#told + 1] = ids[i]
    end
  end
  call_with('ZREM', q.base .. ':delayed', members)
  put_all_in_line(q, by_name)
  count(q, DELAYED, nil, #members)
  count(q, nil, WAITING, #told)
  if #told > 0 then
    announce(q, 'promote', 'waiting', #told, each(told, 'null'))
  end
  wake(q, 'jobs')
end

local function promote_due(q)
  if q.row[DELAYED] == 0 then
    return 0
  end
  local members = call('ZRANGEBYSCORE', q.base .. ':delayed', '-inf', q.now, 'LIMIT', 0, BATCH)
  if #members > 0 then
    promote(q, members)
  end
  return #members
end
