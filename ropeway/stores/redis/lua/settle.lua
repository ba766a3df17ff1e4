-- Records how attempts ended, and claims the next jobs.
-- Takes the queue's base; [now, queue name, outcomes, request or false, [[age, count]]].
-- Returns two letters for each outcome (its verdict and the state before), and what was claimed.
-- Uses: pack, queue, events, jobs, lines, endings, records, claims
local ID, TOKEN_OF, MOVE = 1, 2, 3
local KEEP, RESULT = 4, 5
local DELAY, REASON, REASON_JSON, TRACE, TRACES, EXHAUSTED = 4, 5, 6, 7, 8, 9
local TARGETS = {
  complete = { completed = true }, fail = { failed = true }, ['hand back'] = { waiting = true },
  retry = { delayed = true, waiting = true }, postpone = { delayed = true, waiting = true },
}
local now, queue, outcomes, request, keeps = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, row = q.base, q.row
q.name = pack_text(queue)

local answers, current, unlocked, runs, lost = {}, {}, {}, {}, {}
local ends, results, cleared, reasons, told, back = {}, {}, {}, {}, {}, {}
local tokens, stamp = {}, pack_time(q.now)

for i = 1, #keeps do
  local keep = { age = keeps[i][1], count = keeps[i][2] }
  keep.expires_at = kept_until(q, keep.age)
  keep.piece = pack_time(keep.expires_at)
  keeps[i] = keep
end

local function tell(move, to, text)
  add_to(told, move .. '|' .. to, text)
end

local function complete(outcome, id, run)
  local keep, result = keeps[outcome[KEEP]], outcome[RESULT]
  run = 'c' .. sub(run, MADE, UNTIL - 1) .. keep.piece .. stamp .. sub(run, PLACE)
  finish(q, ends, 'c', id, sub(run, PLACE, TOKEN - 1), keep, keep.expires_at)
  if result then
    results[#results + 1] = id
    results[#results + 1] = result
  end
  -- What failed or stalled before left its reason.
  if sub(run, MADE, MADE + 4) ~= NONE or sub(run, STALLED, STALLED + 4) ~= NONE then
    cleared[#cleared + 1] = id
  end
  tell('complete', 'completed', '["' .. id .. (result and result ~= 'null' and '",{"result":' .. result .. '}]' or '",null]'))
  return run
end

local function fail(outcome, id, run)
  local keep = keeps[outcome[KEEP]]
  local attempt = count_at(run, STARTS)
  remember_failure(q, id, run, outcome[REASON], outcome[TRACE], outcome[TRACES])
  run = ended_run(run, 'f', keep.piece, stamp, pack_count(count_at(run, MADE) + 1))
  finish(q, ends, 'f', id, sub(run, PLACE, TOKEN - 1), keep, keep.expires_at)
  reasons[#reasons + 1] = id
  reasons[#reasons + 1] = outcome[REASON]
  tell('fail', 'failed', '["' .. id .. '",{"reason":' .. outcome[REASON_JSON] .. ',"attempt":' .. attempt
    .. (outcome[EXHAUSTED] and ',"exhausted":true}]' or '}]'))
  return run
end

local function send_back(outcome, id, run)
  local move, delay = outcome[MOVE], outcome[MOVE] ~= 'hand back' and outcome[DELAY] or 0
  local due_at = delay > 0 and kept_until(q, delay)
  local made, detail = nil, due_at and '{"due_at":' .. whole(due_at) .. '}' or 'null'
  if move == 'retry' then
    made = pack_count(count_at(run, MADE) + 1)
    remember_failure(q, id, run, outcome[REASON], outcome[TRACE], outcome[TRACES])
    reasons[#reasons + 1] = id
    reasons[#reasons + 1] = outcome[REASON]
    detail = '{"reason":' .. outcome[REASON_JSON] .. ',"attempt":' .. count_at(run, STARTS) .. ',"delay":'
      .. whole(delay) .. '}'
  end
  back[#back + 1] = { id = id, place = sub(run, PLACE, TOKEN - 1), due_at = due_at }
  tell(move, due_at and 'delayed' or 'waiting', '["' .. id .. '",' .. detail .. ']')
  return ended_run(run, 'o', NEVER, NEVER, made)
end

local MOVES = { complete = complete, fail = fail, retry = send_back, postpone = send_back, ['hand back'] = send_back }

local function settle(outcome, run)
  local id, token = outcome[ID], tokens[outcome[TOKEN_OF]]
  if not token then
    token = pack_text(outcome[TOKEN_OF])
    tokens[outcome[TOKEN_OF]] = token
  end
  if run and is_held(run, token) then
    unlocked[#unlocked + 1] = id
    current[id] = MOVES[outcome[MOVE]](outcome, id, run)
    return 'da'
  end
  local sent_back, state = nil, nil
  for i = #back, 1, -1 do
    if back[i].id == id then
      sent_back = back[i]
      break
    end
  end
  if sent_back and run and byte(run) == 111 then
    state = sent_back.due_at and 'delayed' or 'waiting'
  elseif run and STATES[sub(run, 1, 1)] then
    state = STATES[sub(run, 1, 1)]
  else
    local job = load_job(q, id)
    if not job then
      return 'm-'
    end
    state = job.state
  end
  if run and TARGETS[outcome[MOVE]][state] and sub(run, TOKEN, TOKEN + #token - 1) == token then
    return 'd' .. LETTERS[state]
  end
  lost[#lost + 1] = '["' .. id .. '",{"move":"' .. outcome[MOVE] .. '"}]'
  return 'l' .. LETTERS[state]
end

local function put_back()
  local ids, lines, delayed = {}, {}, {}
  for i = 1, #back do
    ids[i] = back[i].id
  end
  local values = fields_of(base .. ':jobs', ids)
  for i = 1, #back do
    local job = back[i]
    if job.due_at then
      delayed[#delayed + 1] = job.due_at
      delayed[#delayed + 1] = sub(job.place, 7) .. job.id
    else
      add_to(lines, name_of(values[i]), job.place .. job.id)
    end
  end
  put_all_in_line(q, lines)
  call_with('ZADD', base .. ':delayed', delayed)
  wake(q, 'jobs')
end

local ids = {}
for i = 1, #outcomes do
  ids[i] = outcomes[i][ID]
end
local stored = fields_of(base .. ':runs', ids)
for i = 1, #outcomes do
  answers[i] = settle(outcomes[i], current[ids[i]] or stored[i])
end
for id, run in pairs(current) do
  runs[#runs + 1] = id
  runs[#runs + 1] = run
end
call_with('HSET', base .. ':runs', runs)
call_with('ZREM', base .. ':locks', unlocked)
call_with('HSET', base .. ':results', results)
call_with('HDEL', base .. ':reasons', cleared)
call_with('HSET', base .. ':reasons', reasons)
if #back > 0 then
  put_back()
end
for key, texts in pairs(told) do
  local move, to = string.match(key, '^(.-)|(.*)$')
  count(q, ACTIVE, COUNTERS[to], #texts)
  announce(q, move, to, texts)
end
retain(q, ends)
if #lost > 0 then
  announce(q, 'lock-lost', nil, lost)
end
if row[MAX_ACTIVE] > 0 and #unlocked > 0 then
  wake(q, 'jobs')
end
local claimed = request and claim(q, request)
notice_drained(q)
close_queue(q)
return { table.concat(answers), claimed or false }
