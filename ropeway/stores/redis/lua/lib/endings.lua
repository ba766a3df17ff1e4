-- How jobs end, how long they are kept then, and how they are removed.
-- Uses: pack, events, states, runs
local LAST_INSTANT = {{LAST_INSTANT}}
-- Where the flag of jobs with extras is in what `end_job` takes.
local FLAG = STALLED - STARTED_AT + 1

-- How long a job is kept that ends now. A queue that deletes jobs replaces the defaults: see job/stages.py.
local function make_keep(q, age, most)
  if q.row[CONFIGURED] == WITH_STAGES and ({{IS_DEFAULT_KEEP}}) and call('HGET', q.base .. ':stages', 'delete_after') then
    age, most = LAST_INSTANT, false
  end
  local keep = { age = age, count = most, expires_at = age and math.min(q.now + age, LAST_INSTANT) or LAST_INSTANT }
  keep.is_forever = not age and not most
  keep.score, keep.piece = whole(keep.expires_at), keep.is_forever and NEVER or pack_time(keep.expires_at)
  return keep
end

-- Jobs that end in this step by one move, and so in one state; `detail` is JSON about all of them, or nil.
local function begin_ending(q, move, state, detail)
  return {
    move = move, state = state, detail = detail, letter = STATE_CODES[state],
    stamp = pack_time(q.now), now = whole(q.now), number = 0, ids = {}, runs = {}, details = {},
    scores = {}, expiring = {}, expire = 0, at_once = {}, kept = {}, flagged = 0, with_extras = {}, words = {},
  }
end

-- The one place where a job becomes final. It has left the state that it had; `rest` is its run from STARTED_AT on, and
-- `detail` JSON about it, or nil; `word` is its result or reason for its parents, or nil if it surely has none.
-- `write_ending`, `conclude` if there is a step, and `apply_retention` must follow, when all of the step have
-- ended.
local function end_job(ending, id, rest, keep, detail, word)
  local number, letter = ending.number + 1, ending.letter
  local even, member, head = 2 * number, sequence_of(rest) .. id, keep[letter]
  if not head then
    head = letter .. keep.piece .. ending.stamp
    keep[letter] = head
  end
  local run, runs, scores = head .. rest, ending.runs, ending.scores
  ending.number, ending.ids[number] = number, id
  runs[even - 1], runs[even] = id, run
  scores[even - 1], scores[even] = ending.now, member
  if detail then
    ending.details[number], ending.has_details = detail, true
  end
  if word and byte(rest, FLAG) == WITH_EXTRAS then
    local flagged = ending.flagged + 1
    ending.flagged, ending.with_extras[flagged], ending.words[flagged] = flagged, id, word
  end
  if keep.age == 0 or keep.count == 0 then
    ending.at_once[#ending.at_once + 1] = member
    return run
  end
  if keep.expires_at < LAST_INSTANT then
    local expire = ending.expire + 2
    ending.expiring[expire - 1], ending.expiring[expire] = keep.score, member
    ending.expire = expire
  end
  if keep.count then
    ending.count = math.min(keep.count, ending.count or keep.count)
  elseif keep.is_forever then
    ending.kept[#ending.kept + 1] = ending.now
    ending.kept[#ending.kept + 1] = member
  end
  return run
end

-- Writes down and announces the jobs of an ending.
local function write_ending(q, ending)
  local state, ids, number, announced = ending.state, ending.ids, ending.number, nil
  if number == 0 then
    return
  end
  call_with('HSET', q.base .. ':runs', ending.runs)
  call_with('ZADD', q.base .. ':' .. state, ending.scores)
  call_with('ZADD', q.base .. ':expiring:' .. state, ending.expiring)
  call_with('ZADD', q.base .. ':kept:' .. state, ending.kept)
  if ending.has_details then
    announced = {}
    for i = 1, number do
      announced[i] = '["' .. ids[i] .. '",' .. (ending.details[i] or 'null') .. ']'
    end
    announced = table.concat(announced, ',')
  end
  count(q, nil, COUNTERS[state], number)
  announce(q, ending.move, state, number, announced or each(ids, 'null'), ending.detail)
  if ending.flagged > 0 then
    in_flows().note_ends(q, ending.move, state, ending.with_extras, ending.words)
  end
end

-- The one place where jobs are removed. They have left the sets of their state.
local function drop_jobs(q, state, ids, is_silent, reason)
  local base = q.base
  local beside = { ':results', ':reasons', ':progress', ':past', ':marks', ':awaited', ':extras' }
  for i = 1, #beside do
    beside[i] = base .. beside[i]
  end
  if call('EXISTS', unpack(beside)) > 0 then
    local past = fields_of(base .. ':past', ids)
    for i = 1, #ids do
      if past[i] then
        call('UNLINK', base .. ':failures:' .. ids[i], base .. ':log:' .. ids[i], base .. ':marks:' .. ids[i])
      end
    end
    local extras = fields_of(base .. ':extras', ids)
    for i = 1, #ids do
      if extras[i] then
        in_flows().note_removals(q, state, ids, extras)
        call_with('HDEL', base .. ':extras', ids)
        break
      end
    end
    for i = 1, #beside - 1 do
      call_with('HDEL', beside[i], ids)
    end
  end
  call_with('HDEL', base .. ':jobs', ids)
  call_with('HDEL', base .. ':runs', ids)
  count(q, COUNTERS[state], nil, #ids)
  if not is_silent then
    local because = reason and ',"reason":"' .. reason .. '"}' or '}'
    announce(q, '{{REMOVE}}', nil, #ids, each(ids, '{"prev":"' .. state .. '"' .. because))
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

-- Removes finished jobs by their members in the set of their state.
local function drop_finished(q, state, members, are_oldest)
  local ids, number = {}, #members
  for i = 1, number do
    ids[i] = sub(members[i], 8)
  end
  if are_oldest then
    call('ZREMRANGEBYRANK', q.base .. ':' .. state, 0, number - 1)
  else
    call_with('ZREM', q.base .. ':' .. state, members)
  end
  call_with('ZREM', q.base .. ':expiring:' .. state, members)
  drop_jobs(q, state, ids)
end

-- Removes what the jobs of an ending do not keep, themselves or older ones.
local function apply_retention(q, ending)
  local state = ending.state
  local set = q.base .. ':' .. state
  if #ending.at_once > 0 then
    drop_finished(q, state, ending.at_once)
  end
  local beyond = ending.count and q.row[COUNTERS[state]] - ending.count or 0
  if beyond > 0 then
    local kept_set = q.base .. ':kept:' .. state
    local kept = call('ZCARD', kept_set)
    if kept == 0 then
      drop_finished(q, state, call('ZRANGE', set, 0, math.min(beyond, BATCH) - 1), true)
    elseif beyond > kept then
      drop_finished(q, state, oldest_counted(set, kept_set, kept, math.min(beyond - kept, BATCH)))
    end
  end
end
