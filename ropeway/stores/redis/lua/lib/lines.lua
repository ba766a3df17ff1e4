-- Waiting jobs stand in one line per job name; `heads` holds the place of each line's first job.
-- Uses: calls

-- Waiting jobs stand in one line per job name; `heads` holds the place of each line's first job.
local function line_of(q, name)
  return q.base .. ':waiting:' .. name
end

local function first_in(line)
  return call('ZRANGE', line, 0, 0)[1]
end

-- `members` are places with ids. Mostly they go behind others, and the head stays.
local function put_in_line(q, name, members)
  local line, arguments = line_of(q, name), {}
  for i = 1, #members do
    arguments[2 * i - 1], arguments[2 * i] = '0', members[i]
  end
  call_with('ZADD', line, arguments)
  local first, is_new = first_in(line), {}
  for i = 1, #members do
    is_new[members[i]] = true
  end
  if not is_new[first] then
    return
  end
  call('ZADD', q.base .. ':heads', '0', sub(first, 1, 20) .. name)
  -- The head before is the first that is not new.
  for _, member in ipairs(call('ZRANGE', line, 1, #members)) do
    if not is_new[member] then
      call('ZREM', q.base .. ':heads', sub(member, 1, 20) .. name)
      return
    end
  end
end
