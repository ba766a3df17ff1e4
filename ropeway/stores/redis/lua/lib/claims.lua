-- Which jobs a claim takes, and how they become active.
-- Uses: pack, events, runs, lines
local CHUNK = 16

-- The lines that may give jobs, each with the first members that are known of it, the most urgent line first.
local function open_lines(q, request, limit)
  local paused, lines = {}, {}
  for _, name in ipairs(q.row[PAUSED_NAMES]) do
    paused[name] = true
  end
  if request.names then
    for _, name in ipairs(request.names) do
      if not paused[name] then
        paused[name] = true
        local members = call('ZRANGE', line_of(q, name), 0, math.min(limit, CHUNK) - 1)
        if #members > 0 then
          lines[#lines + 1] = { name = name, members = members, first = members[1], next = members[1], taken = 0 }
        end
      end
    end
    table.sort(lines, function(one, other) return is_before(one.first, other.first) end)
  else
    -- Whoever is taken stands in a line whose head is one of the first `limit` heads.
    local heads = call('ZRANGE', q.base .. ':heads', 0, limit + #q.row[PAUSED_NAMES] - 1)
    for i = 1, #heads do
      local name = sub(heads[i], 11)
      if not paused[name] then
        lines[#lines + 1] = { name = name, members = {}, first = heads[i], next = heads[i], taken = 0 }
      end
    end
  end
  return lines
end

-- The next member of a line, and nil at its end; knows a chunk of them at a time.
local function next_of(q, line, wanted)
  if line.taken >= #line.members then
    local from = line.taken
    local more = call('ZRANGE', line_of(q, line.name), from, from + math.min(wanted, CHUNK) - 1)
    for i = 1, #more do
      line.members[from + i] = more[i]
    end
    line.is_gone = from == 0 and #more == 0
  end
  return line.members[line.taken + 1]
end

local function take_from(q, lines)
  forget_head(q)
  local gone, heads = {}, {}
  for i = 1, #lines do
    local line = lines[i]
    -- A line that somebody evicted leaves its head behind.
    if line.taken > 0 or line.is_gone then
      local key = line_of(q, line.name)
      gone[#gone + 1] = sub(line.first, 1, 10) .. line.name
      if line.taken > 0 then
        call('ZREMRANGEBYRANK', key, 0, line.taken - 1)
      end
      local head = line.members[line.taken + 1] or first_in(key)
      if head then
        heads[#heads + 1] = 0
        heads[#heads + 1] = sub(head, 1, 10) .. line.name
      end
    end
  end
  call_with('ZREM', q.base .. ':heads', gone)
  call_with('ZADD', q.base .. ':heads', heads)
end

-- Takes the most urgent members out of their lines.
local function choose(q, request, limit)
  local lines = open_lines(q, request, limit)
  if #lines == 1 then
    local line = lines[1]
    line.members = call('ZRANGE', line_of(q, line.name), 0, limit - 1)
    line.taken, line.is_gone = #line.members, #line.members == 0
    take_from(q, lines)
    return line.members
  end
  local chosen, order = {}, {}
  for i = 1, #lines do
    order[i] = lines[i]
  end
  while #chosen < limit and #order > 0 do
    local line = table.remove(order, 1)
    local second = order[1]
    local member = next_of(q, line, limit - #chosen)
    while member and #chosen < limit and (not second or is_before(member, second.next)) do
      chosen[#chosen + 1] = member
      line.taken = line.taken + 1
      member = #chosen < limit and next_of(q, line, limit - #chosen)
    end
    if member then
      -- Back among the others, behind all that are more urgent.
      local at = 1
      while order[at] and is_before(order[at].next, member) do
        at = at + 1
      end
      line.next = member
      table.insert(order, at, line)
    end
  end
  take_from(q, lines)
  return chosen
end

-- Answers ids, values of `jobs`, and what `pack_rests` returns for those that had a run before, or false (the client knows
-- the rest of the others).
local function activate(q, request, members)
  local number, ids, runs, locks, again = #members, {}, {}, {}, nil
  for i = 1, number do
    ids[i] = sub(members[i], 11)
  end
  local values, before = fields_of(q.base .. ':jobs', ids), fields_of(q.base .. ':runs', ids)
  for i = 1, number do
    if not values[i] then
      members, ids, values = rarely().without_lost(q, members, ids, values)
      before, number = fields_of(q.base .. ':runs', ids), #ids
      break
    end
  end
  if number == 0 then
    return {}, {}, false
  end
  local now, lock_until, score = pack_time(q.now), pack_time(q.now + request.lock), whole(q.now + request.lock)
  local holder = pack_text(request.token) .. pack_text(request.worker)
  local times = 'a' .. lock_until .. (request.isolates and NEVER or ALONE) .. now .. now
  local first_run = times .. NONE .. pack_count(1) .. NONE .. holder
  for i = 1, number do
    local id, run, place = ids[i], before[i], sub(members[i], 1, 10)
    if run then
      again = again or rarely().begin_again(times, holder)
      run = again.start(i, id, run) .. place
    else
      run = first_run .. place
    end
    runs[2 * i - 1], runs[2 * i] = id, run
    locks[2 * i - 1], locks[2 * i] = score, id
  end
  call_with('HSET', q.base .. ':runs', runs)
  call_with('ZADD', q.base .. ':locks', locks)
  count(q, WAITING, ACTIVE, number)
  announce(q, '{{CLAIM}}', '{{ACTIVE}}', number, each(ids, 'null'), '{"worker":' .. request.worker_json .. '}')
  if again and q.row[DEADLINE] > 0 then
    call_with('ZREM', q.base .. ':deadlines', again.ids)
  end
  return ids, values, again and rarely().pack_rests(q, again) or false
end

local function claim(q, request)
  request = {
    token = request[1], worker = request[2], worker_json = request[3], limit = request[4], lock = request[5],
    names = request[6], is_repeat = request[7], isolates = request[8],
  }
  local row = q.row
  if row[DELAYED] > 0 then
    rarely().promote_due(q)
  end
  local ids, values, rests = {}, {}, false
  if request.is_repeat then
    ids, values, rests = rarely().held(q, request)
  end
  if #ids == 0 and row[DEADLINE] > 0 and row[DEADLINE] <= q.now and with_rules().expire_due(q) == BATCH then
    -- There may be more, which must not be started.
    return { q.now, q.now, {}, {}, false }
  end
  if #ids == 0 and row[PAUSED] == 0 then
    local limit = math.min(request.limit, row[WAITING])
    if row[MAX_ACTIVE] > 0 then
      limit = math.min(limit, row[MAX_ACTIVE] - row[ACTIVE])
    end
    local members = limit > 0 and choose(q, request, limit) or {}
    if #members > 0 then
      ids, values, rests = activate(q, request, members)
    end
  end
  local again_at = false
  if #ids < request.limit and row[DELAYED] > 0 then
    again_at = tonumber(call('ZRANGE', q.base .. ':delayed', 0, 0, 'WITHSCORES')[2])
  end
  return { q.now, again_at, ids, values, rests }
end
