-- Waiting jobs stand in one line per job name; `heads` holds the place of each line's first job.
-- Uses: calls, row

-- Whether what begins with one place is more urgent than what begins with the other. Lua itself compares texts by the
-- rules of the server's language.
local function is_before(one, other)
  local first, second = struct.unpack('>I5I5', one)
  local other_first, other_second = struct.unpack('>I5I5', other)
  return first < other_first or (first == other_first and second < other_second)
end

local function line_of(q, name)
  return q.base .. ':waiting:' .. name
end

local function first_in(line)
  return call('ZRANGE', line, 0, 0)[1]
end

-- Call it whenever a line may lose its head: the next job of that line looks whether it is the first.
local function forget_head(q)
  if q.row[HEADED] ~= '' then
    q.row[HEADED], q.changed = '', true
  end
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
  call('ZADD', q.base .. ':heads', '0', sub(first, 1, 10) .. name)
  -- The head before is the first that is not new.
  for _, member in ipairs(call('ZRANGE', line, 1, #members)) do
    if not is_new[member] then
      call('ZREM', q.base .. ':heads', sub(member, 1, 10) .. name)
      return
    end
  end
end
