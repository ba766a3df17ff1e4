-- Outcomes that are no completions, and those that come too late or again.
-- Uses: telling, groups, endings, history
local MOVE, KEEP, RESULT, DELAY, REASON, REASON_JSON, TRACE, TRACES, EXHAUSTED = 1, 2, 3, 2, 3, 4, 5, 6, 7
local TARGETS = {
  complete = { completed = true }, fail = { failed = true }, ['hand back'] = { waiting = true },
  retry = { delayed = true, waiting = true }, postpone = { delayed = true, waiting = true },
}

-- What a call means that comes too late, or again, before anything of this one is written. Answers the two letters.
local function refuse(q, s, id, token, move)
  local run, state = s.settled[id], nil
  if run then
    state = s.went[id] or STATES[sub(run, 1, 1)]
  else
    local job = load_job(q, id)
    if not job then
      return 'm-'
    end
    run, state = job.run, job.state
  end
  if run and TARGETS[move][state] and sub(run, TOKEN, TOKEN + #token - 1) == token then
    return 'd' .. LETTERS[state]
  end
  s.lost[#s.lost + 1] = '["' .. id .. '",{"move":"' .. move .. '"}]'
  return 'l' .. LETTERS[state]
end

local function note_failure(q, s, outcome, id, run)
  remember_failure(q, id, run, outcome[REASON], outcome[TRACE], outcome[TRACES])
  s.reasons[#s.reasons + 1] = id
  s.reasons[#s.reasons + 1] = outcome[REASON]
  return pack_count(count_at(run, MADE) + 1)
end

local function fail(q, s, outcome, id, run)
  local keep, made = s.keeps[outcome[KEEP]], note_failure(q, s, outcome, id, run)
  finish(q, s.ends, 'f', sequence_of(run) .. id, keep)
  add_to(s.told, 'fail|failed', '["' .. id .. '",{"reason":' .. outcome[REASON_JSON] .. ',"attempt":'
    .. count_at(run, STARTS) .. (outcome[EXHAUSTED] and ',"exhausted":true}]' or '}]'))
  return ended_run(run, 'f', keep.piece, s.stamp, made)
end

-- A new place, behind all of the same priority.
local function last_place(q, run)
  q.row[SEQ], q.changed = q.row[SEQ] + 1, true
  return sub(run, -10, -8) .. sub(make_place(0, q.row[SEQ]), 4)
end

local function send_back(q, s, outcome, id, run)
  local move, delay = outcome[MOVE], outcome[MOVE] ~= 'hand back' and outcome[DELAY] or 0
  local due_at = delay > 0 and math.min(q.now + delay, LAST_INSTANT)
  local made, detail = nil, due_at and '{"due_at":' .. whole(due_at) .. '}' or 'null'
  if move == 'retry' then
    made = note_failure(q, s, outcome, id, run)
    detail = '{"reason":' .. outcome[REASON_JSON] .. ',"attempt":' .. count_at(run, STARTS) .. ',"delay":'
      .. whole(delay) .. '}'
  end
  local goes_behind = not due_at and move ~= 'hand back'
  local place = goes_behind and last_place(q, run) or sub(run, -10)
  s.back[#s.back + 1] = { id = id, place = place, due_at = due_at, goes_behind = goes_behind }
  s.went[id] = due_at and 'delayed' or 'waiting'
  add_to(s.told, move .. '|' .. s.went[id], '["' .. id .. '",' .. detail .. ']')
  return sub(ended_run(run, 'o', NEVER, NEVER, made), 1, -11) .. place
end

-- The outcomes after the completions, which are `first` in number.
local function settle_others(q, s, ids, stored, outcomes, first)
  for i = first + 1, #ids do
    local id, run, outcome, token = ids[i], stored[i], outcomes[i - first], s.packed_token(i)
    local move = outcome[MOVE]
    if not run or s.settled[id] or not is_held(run, token) then
      s.answers[i] = refuse(q, s, id, token, move)
    else
      if move == 'complete' then
        local keep = s.keeps[outcome[KEEP]]
        s.complete(id, run, keep, outcome[RESULT])
        run = keep.run .. sub(run, STARTED_AT)
      else
        run = (move == 'fail' and fail or send_back)(q, s, outcome, id, run)
        s.write(id, run)
      end
      s.settled[id], s.answers[i] = run, 'da'
    end
  end
end

local function put_back(q, back)
  local ids, lines, delayed, moved = {}, {}, {}, {}
  for i = 1, #back do
    ids[i] = back[i].id
  end
  local values = fields_of(q.base .. ':jobs', ids)
  for i = 1, #back do
    local job = back[i]
    if job.due_at then
      delayed[#delayed + 1] = job.due_at
      delayed[#delayed + 1] = sub(job.place, 4) .. job.id
    elseif values[i] then
      add_to(lines, name_of(values[i]), job.place .. job.id)
      if job.goes_behind then
        moved[#moved + 1] = job.id
        moved[#moved + 1] = with_place(values[i], job.place)
      end
    end
  end
  call_with('HSET', q.base .. ':jobs', moved)
  put_all_in_line(q, lines)
  call_with('ZADD', q.base .. ':delayed', delayed)
  wake(q, 'jobs')
end

-- Writes down and tells what the others became.
local function finish_others(q, s)
  call_with('HSET', q.base .. ':reasons', s.reasons)
  if #s.back > 0 then
    put_back(q, s.back)
  end
  for key, texts in pairs(s.told) do
    local move, to = string.match(key, '^(.-)|(.*)$')
    count(q, ACTIVE, COUNTERS[to], #texts)
    announce_all(q, move, to, texts)
  end
  if #s.lost > 0 then
    announce_all(q, 'lock-lost', nil, s.lost)
  end
end
