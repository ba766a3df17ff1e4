-- Outcomes other than completions, and those that are refused or repeated.
-- Uses: announcing, groups, endings, history
local MOVE, KEEP, RESULT, DELAY, AWAITS, REASON, REASON_JSON, TRACE, TRACES, EXHAUSTED = 1, 2, 3, 2, 3, 3, 4, 5, 6, 7
local AWAITED_MARK = 4
local REPEAT_TARGETS = {{REPEAT_TARGETS}}

-- What a call means that comes too late, or again, before anything of this one is written. Returns the answer code.
local function refuse(q, s, id, token, move)
  local run, state = s.settled[id], nil
  if run then
    state = s.went[id] or RUN_STATES[sub(run, 1, 1)]
  else
    local job = load_job(q, id)
    if not job then
      return '{{MISSING}}'
    end
    run, state = job.run, job.state
  end
  if run and REPEAT_TARGETS[move][state] and sub(run, TOKEN, TOKEN + #token - 1) == token then
    return '{{DONE}}' .. STATE_CODES[state]
  end
  s.lost = s.lost or {}
  s.lost[#s.lost + 1] = '["' .. id .. '",{"move":"' .. move .. '"}]'
  return '{{LOST}}' .. STATE_CODES[state]
end

local function note_failure(q, s, outcome, id, run)
  remember_failure(q, id, run, outcome[REASON], outcome[TRACE], outcome[TRACES])
  s.reasons[#s.reasons + 1] = id
  s.reasons[#s.reasons + 1] = outcome[REASON]
  return pack_count(count_at(run, MADE) + 1)
end

local function fail(q, s, outcome, id, run)
  local made = note_failure(q, s, outcome, id, run)
  local detail = '{"reason":' .. outcome[REASON_JSON] .. ',"attempt":' .. count_at(run, STARTS)
    .. (outcome[EXHAUSTED] and ',"exhausted":true}' or '}')
  s.failed = s.failed or begin_ending(q, '{{FAIL}}', '{{FAILED}}')
  return end_job(s.failed, id, with_counters(run, made), s.keeps[outcome[KEEP]], detail, outcome[REASON])
end

-- A new place, behind all of the same priority.
local function last_place(q, run)
  q.row[SEQ], q.changed = q.row[SEQ] + 1, true
  return sub(run, -10, -8) .. sub(make_place(0, q.row[SEQ]), 4)
end

-- A job that waits for its children stays at its place in line.
local function await_children(q, s, id, run)
  local state = '{{WAITING_CHILDREN}}'
  s.back[#s.back + 1] = { id = id, place = sub(run, -10), awaits = true }
  s.went[id] = state
  add_to(s.announced, '{{POSTPONE}}|' .. state, '["' .. id .. '",null]')
  run = STATE_CODES[state] .. sub(waiting_run(run), 2)
  s.runs[#s.runs + 1] = id
  s.runs[#s.runs + 1] = run
  return run
end

local function send_back(q, s, outcome, id, run)
  if outcome[MOVE] == '{{POSTPONE}}' and outcome[AWAITS] and in_flows().begins_to_wait(q, id, run) then
    return await_children(q, s, id, run)
  end
  local move, delay = outcome[MOVE], outcome[MOVE] ~= '{{HAND_BACK}}' and outcome[DELAY] or 0
  if move == '{{POSTPONE}}' and outcome[AWAITED_MARK] and delay > 0 then
    delay, run = with_marks().await_mark(q, id, run, outcome[AWAITED_MARK], delay)
  end
  local due_at = delay > 0 and math.min(q.now + delay, LAST_INSTANT)
  local made, detail = nil, due_at and '{"due_at":' .. whole(due_at) .. '}' or 'null'
  if move == '{{RETRY}}' then
    made = note_failure(q, s, outcome, id, run)
    detail = '{"reason":' .. outcome[REASON_JSON] .. ',"attempt":' .. count_at(run, STARTS) .. ',"delay":'
      .. whole(delay) .. '}'
  end
  local goes_behind = not due_at and move ~= '{{HAND_BACK}}'
  local place = goes_behind and last_place(q, run) or sub(run, -10)
  s.back[#s.back + 1] = { id = id, place = place, due_at = due_at, goes_behind = goes_behind }
  s.went[id] = due_at and '{{DELAYED}}' or '{{WAITING}}'
  add_to(s.announced, move .. '|' .. s.went[id], '["' .. id .. '",' .. detail .. ']')
  run = sub(waiting_run(run, made), 1, -11) .. place
  s.runs[#s.runs + 1] = id
  s.runs[#s.runs + 1] = run
  return run
end

-- The outcomes after the completions, which are `first` in number. Answers how many ended otherwise than completed.
local function settle_others(q, s, ids, stored, outcomes, first)
  s.reasons, s.runs, s.announced, s.back, s.went = {}, {}, {}, {}, {}
  for i = first + 1, #ids do
    local id, run, outcome, token = ids[i], stored[i], outcomes[i - first], s.packed_token(i)
    local move = outcome[MOVE]
    if not run or s.settled[id] or not is_held(run, token) then
      s.answers[i] = refuse(q, s, id, token, move)
    else
      if move == '{{COMPLETE}}' then
        run = s.complete(id, run, s.keeps[outcome[KEEP]], outcome[RESULT])
      else
        run = (move == '{{FAIL}}' and fail or send_back)(q, s, outcome, id, run)
      end
      s.settled[id], s.answers[i] = run, '{{ACCEPTED}}'
    end
  end
  return #s.back + (s.failed and s.failed.number or 0)
end

local function put_back(q, back)
  if #back == 0 then
    return
  end
  local ids, lines, delayed, moved = {}, {}, {}, {}
  for i = 1, #back do
    ids[i] = back[i].id
  end
  call_with('ZREM', q.base .. ':locks', ids)
  local values = fields_of(q.base .. ':jobs', ids)
  for i = 1, #back do
    local job = back[i]
    if job.awaits then
      call('ZADD', q.base .. ':' .. '{{WAITING_CHILDREN}}', 0, sequence_of(job.place) .. job.id)
    elseif job.due_at then
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

-- Writes down and announces what the others became.
local function write_others(q, s)
  if s.failed then
    call_with('ZREM', q.base .. ':locks', s.failed.ids)
    write_ending(q, s.failed)
  end
  if s.back then
    call_with('HSET', q.base .. ':runs', s.runs)
    call_with('HSET', q.base .. ':reasons', s.reasons)
    put_back(q, s.back)
    for key, texts in pairs(s.announced) do
      local move, to = string.match(key, '^(.-)|(.*)$')
      count(q, nil, COUNTERS[to], #texts)
      announce_all(q, move, to, texts)
    end
  end
  if s.lost then
    announce_all(q, '{{LOCK_LOST}}', nil, s.lost)
  end
end
