-- Waiting jobs stand in one line per job name; `heads` holds the place of each line's first job.

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
