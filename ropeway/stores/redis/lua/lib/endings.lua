-- How jobs end, how long they are kept then, and how they go.
-- Uses: pack, events, runs
local FINAL = { c = 'completed', f = 'failed', x = 'cancelled' }
local ENDED = { c = COMPLETED, f = FAILED, x = CANCELLED }
local LAST_INSTANT = 253402300799999

-- How long a job is kept that ends now.
local function make_keep(q, age, most)
  local keep = { age = age, count = most, expires_at = age and math.min(q.now + age, LAST_INSTANT) or LAST_INSTANT }
  keep.is_forever = not age and not most
  keep.score, keep.piece = whole(keep.expires_at), keep.is_forever and NEVER or pack_time(keep.expires_at)
  return keep
end

-- Notes that a job has ended; `keep` has an age and a count, each of which may be false, and the end that they mean.
local function finish(q, ends, letter, member, keep)
  local state = ends[letter]
  if not state then
    state = { scores = {}, expiring = {}, at_once = {}, kept = {}, number = 0, expire = 0, now = whole(q.now) }
    ends[letter] = state
  end
  local number = state.number + 2
  state.scores[number - 1], state.scores[number] = state.now, member
  state.number = number
  if keep.age == 0 or keep.count == 0 then
    state.at_once[#state.at_once + 1] = member
    return
  end
  if keep.expires_at < LAST_INSTANT then
    local expire = state.expire + 2
    state.expiring[expire - 1], state.expiring[expire] = keep.score, member
    state.expire = expire
  end
  if keep.count then
    state.count = math.min(keep.count, state.count or keep.count)
  elseif keep.is_forever then
    state.kept[#state.kept + 1] = state.now
    state.kept[#state.kept + 1] = member
  end
end

-- Everything about jobs but their places.
local function erase(q, ids)
  local base = q.base
  call_with('HDEL', base .. ':jobs', ids)
  call_with('HDEL', base .. ':runs', ids)
  if call('EXISTS', base .. ':results', base .. ':reasons', base .. ':progress', base .. ':past', base .. ':extras') > 0 then
    local past = fields_of(base .. ':past', ids)
    for i = 1, #ids do
      if past[i] then
        call('UNLINK', base .. ':failures:' .. ids[i], base .. ':log:' .. ids[i])
      end
    end
    for _, what in ipairs({ ':results', ':reasons', ':progress', ':past', ':extras' }) do
      call_with('HDEL', base .. what, ids)
    end
  end
end

-- The oldest of a state without those that are kept for ever, which stand in both sets, in the same order: as long as
-- both have the same member at a rank (the second counted from behind those that were chosen), nothing else is before it.
local function oldest_counted(set, kept_set, kept, number)
  local members, low = {}, 0
  for i = 0, number - 1 do
    local high = kept
    while low < high do
      local middle = math.floor((low + high) / 2)
      if call('ZRANGE', set, middle + i, middle + i)[1] == call('ZRANGE', kept_set, middle, middle)[1] then
        low = middle + 1
      else
        high = middle
      end
    end
    members[i + 1] = call('ZRANGE', set, low + i, low + i)[1]
  end
  return members
end

-- Removes finished jobs by their members in the set of their state, and says so.
local function remove_finished(q, letter, members, are_oldest)
  local state, ids, number = FINAL[letter], {}, #members
  for i = 1, number do
    ids[i] = sub(members[i], 8)
  end
  if are_oldest then
    call('ZREMRANGEBYRANK', q.base .. ':' .. state, 0, number - 1)
  else
    call_with('ZREM', q.base .. ':' .. state, members)
  end
  call_with('ZREM', q.base .. ':expiring:' .. state, members)
  erase(q, ids)
  count(q, ENDED[letter], nil, number)
  announce(q, 'remove', nil, number, each(ids, '{"prev":"' .. state .. '"}'))
end

-- Puts ended jobs where they are kept, then removes what retention does not keep.
local function retain(q, ends)
  for letter, ended in pairs(ends) do
    local set = q.base .. ':' .. FINAL[letter]
    call_with('ZADD', set, ended.scores)
    call_with('ZADD', q.base .. ':expiring:' .. FINAL[letter], ended.expiring)
    if #ended.at_once > 0 then
      remove_finished(q, letter, ended.at_once)
    end
    call_with('ZADD', q.base .. ':kept:' .. FINAL[letter], ended.kept)
    local beyond = ended.count and q.row[ENDED[letter]] - ended.count or 0
    if beyond > 0 then
      local kept_set = q.base .. ':kept:' .. FINAL[letter]
      local kept = call('ZCARD', kept_set)
      if kept == 0 then
        remove_finished(q, letter, call('ZRANGE', set, 0, math.min(beyond, BATCH) - 1), true)
      elseif beyond > kept then
        remove_finished(q, letter, oldest_counted(set, kept_set, kept, math.min(beyond - kept, BATCH)))
      end
    end
  end
end
