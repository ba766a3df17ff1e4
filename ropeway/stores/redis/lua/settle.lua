-- Records how attempts ended, and claims the next jobs.
-- Takes the queue's base; [now, ids, tokens, completions, outcomes, request or false, [[age, count]]]: the first of the
-- ids were completed, as the completions say ([keep] or [keep, result], or one number if all are kept alike and have
-- none), the others ended as the outcomes say.
-- Returns two letters for each id (the verdict and the state before), and what was claimed.
-- Uses: pack, queue, events, jobs, lines, endings, records, claims
local MOVE, KEEP, RESULT, DELAY, REASON, REASON_JSON, TRACE, TRACES, EXHAUSTED = 1, 2, 3, 2, 3, 4, 5, 6, 7
local TARGETS = {
  complete = { completed = true }, fail = { failed = true }, ['hand back'] = { waiting = true },
  retry = { delayed = true, waiting = true }, postpone = { delayed = true, waiting = true },
}
local now, ids, tokens, completions, outcomes, request, keeps = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, row = q.base, q.row
local answers, runs, unlocked, lost, ends, number = {}, {}, {}, {}, {}, 0
local results, cleared, reasons, told, back, settled, went, completed = {}, {}, {}, {}, {}, {}, {}, {}
local packed_tokens, stamp = {}, pack_time(q.now)

for i = 1, #keeps do
  keeps[i] = make_keep(q, keeps[i][1], keeps[i][2])
  keeps[i].run = 'c' .. keeps[i].piece .. stamp
end

-- Notes what becomes of a job that its holder settles.
local function write(id, run)
  number = number + 1
  unlocked[number], runs[2 * number - 1], runs[2 * number] = id, id, run
  settled[id] = run
end

-- What a call means that comes too late, or again, before anything of this one is written. Answers the two letters.
local function refuse(id, token, move)
  local run, state = settled[id], nil
  if run then
    state = went[id] or STATES[sub(run, 1, 1)]
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
  lost[#lost + 1] = '["' .. id .. '",{"move":"' .. move .. '"}]'
  return 'l' .. LETTERS[state]
end

local function packed_token(i)
  local token = packed_tokens[tokens[i]]
  if not token then
    token = pack_text(tokens[i])
    packed_tokens[tokens[i]] = token
  end
  return token
end

local function complete(id, run, keep, result)
  write(id, keep.run .. sub(run, STARTED_AT))
  finish(q, ends, 'c', sequence_of(run) .. id, keep)
  if result then
    results[#results + 1] = id
    results[#results + 1] = result
  end
  -- What failed or stalled before left its reason.
  if sub(run, MADE, STARTS - 1) ~= NONE or sub(run, STALLED, TOKEN - 1) ~= NONE then
    cleared[#cleared + 1] = id
  end
  completed[#completed + 1] = result and result ~= 'null' and { id, result } or id
end

local function complete_all(stored, last)
  local is_plain = type(completions) == 'number'
  local keep, result = keeps[is_plain and completions or 1], nil
  for i = 1, last do
    local id, run, token = ids[i], stored[i], packed_token(i)
    if run and not settled[id] and is_held(run, token) then
      if not is_plain then
        keep, result = keeps[completions[i][1]], completions[i][2]
      end
      complete(id, run, keep, result)
      answers[i] = 'da'
    else
      answers[i] = refuse(id, token, 'complete')
    end
  end
end

local function tell_completed()
  if #completed == 0 then
    return
  end
  local texts = {}
  for i = 1, #completed do
    if type(completed[i]) == 'table' then
      for j = 1, #completed do
        local job = completed[j]
        texts[j] = type(job) == 'table' and '["' .. job[1] .. '",{"result":' .. job[2] .. '}]' or '["' .. job .. '",null]'
      end
      break
    end
  end
  count(q, ACTIVE, COMPLETED, #completed)
  announce(q, 'complete', 'completed', #completed, texts[1] and table.concat(texts, ',') or each(completed, 'null'))
end

local function tell(move, to, text)
  add_to(told, move .. '|' .. to, text)
end

local function fail(outcome, id, run)
  local keep = keeps[outcome[KEEP]]
  remember_failure(q, id, run, outcome[REASON], outcome[TRACE], outcome[TRACES])
  finish(q, ends, 'f', sequence_of(run) .. id, keep)
  reasons[#reasons + 1] = id
  reasons[#reasons + 1] = outcome[REASON]
  tell('fail', 'failed', '["' .. id .. '",{"reason":' .. outcome[REASON_JSON] .. ',"attempt":' .. count_at(run, STARTS)
    .. (outcome[EXHAUSTED] and ',"exhausted":true}]' or '}]'))
  return ended_run(run, 'f', keep.piece, stamp, pack_count(count_at(run, MADE) + 1))
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
  back[#back + 1] = { id = id, place = sub(run, -20), due_at = due_at }
  went[id] = due_at and 'delayed' or 'waiting'
  tell(move, went[id], '["' .. id .. '",' .. detail .. ']')
  return ended_run(run, 'o', NEVER, NEVER, made)
end

local function put_back()
  local waiting, lines, delayed = {}, {}, {}
  for i = 1, #back do
    waiting[i] = back[i].id
  end
  local values = fields_of(base .. ':jobs', waiting)
  for i = 1, #back do
    local job = back[i]
    if job.due_at then
      delayed[#delayed + 1] = job.due_at
      delayed[#delayed + 1] = sub(job.place, 7) .. job.id
    elseif values[i] then
      add_to(lines, name_of(values[i]), job.place .. job.id)
    end
  end
  put_all_in_line(q, lines)
  call_with('ZADD', base .. ':delayed', delayed)
  wake(q, 'jobs')
end

local stored, last = fields_of(base .. ':runs', ids), #ids - #outcomes
complete_all(stored, last)
for i = last + 1, #ids do
  local id, run, outcome = ids[i], stored[i], outcomes[i - last]
  local move = outcome[MOVE]
  if not run or settled[id] or not is_held(run, packed_token(i)) then
    answers[i] = refuse(id, packed_token(i), move)
  else
    if move == 'complete' then
      complete(id, run, keeps[outcome[KEEP]], outcome[RESULT])
    elseif move == 'fail' then
      write(id, fail(outcome, id, run))
    else
      write(id, send_back(outcome, id, run))
    end
    answers[i] = 'da'
  end
end
call_with('HSET', base .. ':runs', runs)
call_with('ZREM', base .. ':locks', unlocked)
call_with('HSET', base .. ':results', results)
call_with('HDEL', base .. ':reasons', cleared)
call_with('HSET', base .. ':reasons', reasons)
tell_completed()
if #back > 0 then
  put_back()
end
for key, texts in pairs(told) do
  local move, to = string.match(key, '^(.-)|(.*)$')
  count(q, ACTIVE, COUNTERS[to], #texts)
  announce_all(q, move, to, texts)
end
retain(q, ends)
if #lost > 0 then
  announce_all(q, 'lock-lost', nil, lost)
end
if row[MAX_ACTIVE] > 0 and number > 0 then
  wake(q, 'jobs')
end
local claimed = request and claim(q, request)
notice_drained(q)
close_queue(q)
return { table.concat(answers), claimed or false }
