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

-- Call it after a line was changed, with the member that was first before.
local function set_head(q, name, line, before)
  local after = first_in(line)
  if after ~= before then
    if before then
      call('ZREM', q.base .. ':heads', sub(before, 1, 10) .. name)
    end
    if after then
      call('ZADD', q.base .. ':heads', 0, sub(after, 1, 10) .. name)
    end
  end
end

-- `members` are places with ids. Mostly they go behind others, and the head stays.
local function put_in_line(q, name, members)
  local line, arguments = line_of(q, name), {}
  for i = 1, #members do
    arguments[2 * i - 1], arguments[2 * i] = '0', members[i]
  end
  local before = first_in(line)
  call_with('ZADD', line, arguments)
  set_head(q, name, line, before)
end
