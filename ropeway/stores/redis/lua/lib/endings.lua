-- How jobs end, how long they are kept then, and how they go.
local FINAL = { c = 'completed', f = 'failed', x = 'cancelled' }
local LAST_INSTANT = 253402300799999

local function kept_until(q, age)
  return age and math.min(q.now + age, LAST_INSTANT) or LAST_INSTANT
end

-- Notes that a job has ended; `keep` has an age and a count, each of which may be false.
local function finish(q, ends, letter, id, place, keep, expires_at)
  local member = sequence_of(place) .. id
  local state = ends[letter]
  if not state then
    state = { scores = {}, expiring = {}, at_once = {} }
    ends[letter] = state
  end
  local scores = state.scores
  scores[#scores + 1] = q.now
  scores[#scores + 1] = member
  if keep.age == 0 or keep.count == 0 then
    state.at_once[#state.at_once + 1] = member
  else
    if expires_at < LAST_INSTANT then
      local expiring = state.expiring
      expiring[#expiring + 1] = expires_at
      expiring[#expiring + 1] = letter .. member
    end
    if keep.count then
      state.count = math.min(keep.count, state.count or keep.count)
    end
  end
end

local function lists_of(q, ids)
  local past = fields_of(q.base .. ':past', ids)
  local lists = {}
  for i = 1, #ids do
    if past[i] then
      lists[#lists + 1] = q.base .. ':failures:' .. ids[i]
      lists[#lists + 1] = q.base .. ':log:' .. ids[i]
    end
  end
  return lists
end

-- Everything about jobs but their places.
local function erase(q, ids)
  local base = q.base
  call_with('HDEL', base .. ':jobs', ids)
  call_with('HDEL', base .. ':runs', ids)
  if call('EXISTS', base .. ':results', base .. ':reasons', base .. ':progress', base .. ':past') > 0 then
    local lists = lists_of(q, ids)
    for i = 1, #lists do
      call('UNLINK', lists[i])
    end
    for _, what in ipairs({ ':results', ':reasons', ':progress', ':past' }) do
      call_with('HDEL', base .. what, ids)
    end
  end
end

-- Removes finished jobs by their members in the set of their state, and says so.
local function remove_finished(q, letter, members)
  local state, ids, expiring, told = FINAL[letter], {}, {}, {}
  for i = 1, #members do
    local id = sub(members[i], 15)
    ids[i] = id
    expiring[i] = letter .. members[i]
    told[i] = '["' .. id .. '",{"prev":"' .. state .. '"}]'
  end
  call_with('ZREM', q.base .. ':' .. state, members)
  call_with('ZREM', q.base .. ':expiring', expiring)
  erase(q, ids)
  count(q, COUNTERS[state], nil, #ids)
  announce(q, 'remove', nil, told)
end

-- Puts ended jobs where they are kept, then removes what retention does not keep.
local function retain(q, ends)
  for letter, ended in pairs(ends) do
    local set = q.base .. ':' .. FINAL[letter]
    call_with('ZADD', set, ended.scores)
    call_with('ZADD', q.base .. ':expiring', ended.expiring)
    if #ended.at_once > 0 then
      remove_finished(q, letter, ended.at_once)
    end
    local beyond = ended.count and q.row[COUNTERS[FINAL[letter]]] - ended.count or 0
    if beyond > 0 then
      remove_finished(q, letter, call('ZRANGE', set, 0, math.min(beyond, BATCH) - 1))
    end
  end
end

-- Keeps the newest `most` failed attempts of a job.
local function remember_failure(q, id, run, reason, trace, most)
  local list = q.base .. ':failures:' .. id
  local _, worker = holder_of(run)
  if most > 0 then
    call('RPUSH', list, '\149' .. sub(run, STARTS, STARTS + 4) .. pack_time(q.now) .. worker .. pack_text(reason)
      .. pack_text(trace))
    call('LTRIM', list, -most, -1)
    call('HSETNX', q.base .. ':past', id, 0)
  else
    call('UNLINK', list)
  end
end

local function revoke(q, id, run)
  local token = holder_of(run)
  token = token ~= NIL and read_text(token, 1) or ''
  q.row[REVOKED] = q.row[REVOKED] + 1
  call('ZADD', q.base .. ':revoked', q.row[REVOKED], cmsgpack.pack({ q.row[REVOKED], q.now, id, token }))
  q.changed = true
  wake(q, 'revoked')
end
