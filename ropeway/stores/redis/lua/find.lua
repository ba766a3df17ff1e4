-- Reads jobs of one state in its order, from a place on.
-- Takes the queue's base; [queue name, state, job name or false, tag or false, score, member, backwards, how many jobs
-- to look at, the greatest score or false].
-- Returns the jobs (packed), the score and member of each, and those of the last one looked at or false at the end.
-- Uses: lines, reading
local queue, state, name, tag, score, member, backwards, most, greatest = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], 0)
q.name = pack_text(queue)

-- By bytes: Lua itself compares texts by the rules of the server's language.
local function is_less(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = byte(one, i), byte(other, i)
    if a ~= b then
      return a < b
    end
  end
  return #one < #other
end

local function comes_before(one_score, one, other_score, other)
  return one_score < other_score or (one_score == other_score and is_less(one, other))
end

-- How many members of a sorted set stand before the place, or at it.
local function rank_of(set, size, including)
  local low, high = 0, size
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = call('ZRANGE', set, middle, middle, 'WITHSCORES')
    local is_there = found[1] == member and tonumber(found[2]) == score
    if comes_before(tonumber(found[2]), found[1], score, member) or (including and is_there) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- Pairs of score and member beyond the place, nearest first.
local function look_in(set)
  local all, found, pairs_found = call('ZCARD', set), nil, {}
  local size = greatest and call('ZCOUNT', set, '-inf', greatest) or all
  if backwards then
    local rank = member and rank_of(set, size, false) or size
    found = rank > 0 and call('ZREVRANGE', set, all - rank, all - rank + most - 1, 'WITHSCORES') or {}
  else
    local rank = member and rank_of(set, size, true) or 0
    found = rank < size and call('ZRANGE', set, rank, math.min(rank + most, size) - 1, 'WITHSCORES') or {}
  end
  for i = 1, #found, 2 do
    pairs_found[#pairs_found + 1] = { tonumber(found[i + 1]), found[i] }
  end
  return pairs_found
end

local function sorted(found)
  table.sort(found, function(one, other)
    if backwards then
      one, other = other, one
    end
    return comes_before(one[1], one[2], other[1], other[2])
  end)
  for i = most + 1, #found do
    found[i] = nil
  end
  return found
end

local function look_in_lines()
  if name then
    return look_in(line_of(q, name))
  end
  local found = {}
  for _, head in ipairs(call('ZRANGE', q.base .. ':heads', 0, -1)) do
    for _, pair in ipairs(look_in(line_of(q, sub(head, 11)))) do
      found[#found + 1] = pair
    end
  end
  return sorted(found)
end

local function look_at_active()
  local ids, found = call('ZRANGE', q.base .. ':locks', 0, -1), {}
  local runs = fields_of(q.base .. ':runs', ids)
  for i = 1, #ids do
    if runs[i] then
      local at, key = time_at(runs[i], STARTED_AT), sequence_of(runs[i]) .. ids[i]
      if not member or (backwards and comes_before(at, key, score, member))
        or (not backwards and comes_before(score, member, at, key)) then
        found[#found + 1] = { at, key }
      end
    end
  end
  return sorted(found)
end

local found
if state == '{{WAITING}}' then
  found = look_in_lines()
elseif state == '{{ACTIVE}}' then
  found = look_at_active()
else
  found = look_in(q.base .. ':' .. state)
end

local function id_of(member_found)
  return sub(member_found, state == '{{WAITING}}' and 11 or 8)
end

-- Which of them have the name and the tag.
local function wanted()
  local ids = {}
  for i = 1, #found do
    ids[i] = id_of(found[i][2])
  end
  local values = name and fields_of(q.base .. ':jobs', ids)
  local extras = tag and (extras_of(q, ids, fields_of(q.base .. ':runs', ids)) or {})
  local some = {}
  for i = 1, #found do
    if (not name or (values[i] and name_of(values[i]) == name)) and (not tag or has_tag(extras[i], tag)) then
      some[#some + 1] = found[i]
    end
  end
  return some
end

local last = #found == most and { whole(found[most][1]), found[most][2] } or false
local ids, records, keys = {}, {}, {}
local jobs = (name or tag) and wanted() or found
for i = 1, #jobs do
  ids[i] = id_of(jobs[i][2])
end
local all = records_of(q, ids)
for i = 1, #jobs do
  if all[i] then
    records[#records + 1] = all[i]
    keys[#keys + 1] = { whole(jobs[i][1]), jobs[i][2] }
  end
end
return { pack_list(records), keys, last }
