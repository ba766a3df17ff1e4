-- Records how attempts ended, and claims the next jobs.
-- Takes the queue's base; [now, ids, tokens, completions, outcomes, request or false, [[age, count]]], and behind that, if
-- there are marks or notices: what `mark_outcomes` takes, or false, and the notices of completions that write no marks, as lists
-- of numbers, and of events and their details in turn. The first of the ids were completed, as the completions say ([keep] or
-- [keep, result], or one number if all are kept alike and have none), the others ended as the outcomes say. If outcomes
-- add jobs: bases of their queues after the first, and what `read_adds` takes.
-- Returns an answer code for each id (the verdict and the state before), what was claimed, the numbers of new queues,
-- and names and texts of what went into the outbox.
-- Uses: room, endings, claims
-- Rarely: promotion, repeated_claims, other_outcomes
-- In flows: flows
-- New flows: flow_bundles
-- With adds: adds
-- With marks: marked_outcomes
-- With rules: leaving, expiry, dedupe
local now, ids, tokens, completions, outcomes, request, keeps, markings, notices = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local adds = ARGV[2] and with_adds().read_adds(q, ARGV[2], ARGV[3])
local base, packed_tokens = q.base, {}
local answers, results, cleared = {}, {}, {}
local completed = begin_ending(q, '{{COMPLETE}}', '{{COMPLETED}}')
local s = { answers = answers, keeps = keeps, settled = {} }

for i = 1, #keeps do
  keeps[i] = make_keep(q, keeps[i][1], keeps[i][2])
end

function s.packed_token(i)
  local token = packed_tokens[tokens[i]]
  if not token then
    token = pack_text(tokens[i])
    packed_tokens[tokens[i]] = token
  end
  return token
end

local FIRST_START = NONE .. pack_count(1) .. NONE
local FIRST_WITH_EXTRAS = sub(FIRST_START, 1, 10) .. char(WITH_EXTRAS) .. sub(NONE, 2)
local FIRST_WITH_MARKS = char(WITH_MARKS) .. sub(FIRST_START, 2)
function s.complete(id, run, keep, result)
  local counters, detail, word = sub(run, MADE, TOKEN - 1), nil, nil
  if counters ~= FIRST_START and counters ~= FIRST_WITH_MARKS then
    word = result or ''
    -- What failed or stalled before left its reason.
    if counters ~= FIRST_WITH_EXTRAS then
      cleared[#cleared + 1] = id
    end
  end
  if result then
    results[#results + 1] = id
    results[#results + 1] = result
    detail = result ~= 'null' and '{"result":' .. result .. '}'
  end
  return end_job(completed, id, sub(run, STARTED_AT), keep, detail, word)
end

-- Ids of completions are all different: see the client.
local stored, last = fields_of(base .. ':runs', ids), #ids - #outcomes
if markings then
  with_marks().mark_outcomes(q, s, ids, stored, last > 0, unpack(markings))
end
for i = 1, notices and #notices or 0 do
  local numbers, events, told = notices[i][1], notices[i][2], {}
  for k = 1, #numbers do
    local number = numbers[k]
    if stored[number] and is_held(stored[number], s.packed_token(number)) then
      told[#told + 1] = ids[number]
    end
  end
  local listed = #told > 0 and each(told, 'null')
  for k = 1, listed and #events or 0, 2 do
    announce(q, events[k], nil, #told, listed, events[k + 1])
  end
end
local is_plain, complete, packed_token = type(completions) == 'number', s.complete, s.packed_token
local keep, result = keeps[1], nil
for i = 1, last do
  local id, run, token = ids[i], stored[i], packed_token(i)
  if run and is_held(run, token) then
    if not is_plain then
      keep, result = keeps[completions[i][1]], completions[i][2]
    end
    complete(id, run, keep, result)
    answers[i] = '{{ACCEPTED}}'
  else
    answers[i] = rarely().refuse(q, s, id, token, '{{COMPLETE}}')
  end
end
local number = last < #ids and rarely().settle_others(q, s, ids, stored, outcomes, last) or 0
number = number + completed.number
if number > 0 then
  count(q, ACTIVE, nil, number)
end
call_with('ZREM', base .. ':locks', completed.ids)
call_with('HSET', base .. ':results', results)
call_with('HDEL', base .. ':reasons', cleared)
write_ending(q, completed)
if number > completed.number or s.lost then
  rarely().write_others(q, s)
end
local new_queues = adds and with_adds().add_accepted(adds, answers)
local posted = q.step and in_flows().conclude(q)
apply_retention(q, completed)
if s.failed then
  apply_retention(q, s.failed)
end
if q.row[MAX_ACTIVE] > 0 and number > 0 then
  wake(q, 'jobs')
end
local claimed = request and claim(q, request)
if q.posted then
  posted = posted or {}
  for i = 1, #q.posted do
    posted[#posted + 1] = q.posted[i]
  end
end
if q.busy > 0 and q.row[WAITING] + q.row[ACTIVE] == 0 then
  announce(q, '{{DRAINED}}', nil, 0)
end
close_queue(q)
return { table.concat(answers), claimed or false, new_queues or {}, posted or {} }
