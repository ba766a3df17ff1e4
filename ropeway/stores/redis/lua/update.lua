-- Writes down progress, data, log lines and marks of jobs.
-- Takes the queue's base; [now, [[id, token, progress, data, [line], keep_logs, company, whether its stalls no longer count,
-- marking, notices]]] with false for what is not given; the company of an active job says that it runs 'alone' in its process,
-- or 'beside' others, or is empty. If jobs get children: bases of their queues after the first, and what `read_child_updates` takes.
-- Returns an answer code for each change, its verdict and the job's state; and the numbers of queues that are new.
-- Uses: announcing, changing, notices, awaited_marks
-- Rarely: bundles, promotion, repeated_claims
-- In flows: flows
-- New flows: child_updates
-- With rules: leaving, expiry, dedupe
local now, changes = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local given_children = ARGV[2] and new_flows().read_child_updates(q, ARGV[2], ARGV[3])
local base, answers, progress, changed, marked = q.base, {}, {}, {}, {}

local function verdict(change, job)
  if not job then
    return '{{MISSING}}'
  elseif change[2] then
    return (job.run and is_held(job.run, pack_text(change[2])) and '{{DONE}}' or '{{LOST}}') .. STATE_CODES[job.state]
  end
  return (IS_FINAL[job.state] and '{{REFUSED}}' or '{{DONE}}') .. STATE_CODES[job.state]
end

local function log(id, lines, most)
  local list, texts = base .. ':log:' .. id, {}
  for i = 1, #lines do
    texts[i] = '\146' .. pack_time(q.now) .. pack_text(lines[i])
  end
  call_with('RPUSH', list, texts)
  if most > 0 then
    call('LTRIM', list, -most, -1)
  else
    call('UNLINK', list)
  end
  call('HINCRBY', base .. ':past', id, #lines)
end

local function write_marks(job, change)
  local id = job.id
  local run = call('HGET', base .. ':runs', id) or blank_run(job.place)
  if marked[id] then
    separate_notices(q)
    marked = {}
  end
  marked[id] = true
  local runs = mark(q, { id }, { run }, { change[9] })
  note_notices(q, { id }, change[10])
  if #runs > 0 then
    call_with('HSET', base .. ':runs', runs)
  elseif job.state == '{{DELAYED}}' and not change[2] and is_awaited(q, id, change[9]) then
    -- A job that waits for a mark has the flag of those that have marks.
    announce_notices(q)
    rarely().promote(q, { sub(job.place, 4) .. id })
  end
end

local function apply(job, change)
  local id = job.id
  if change[3] then
    call('HSET', base .. ':progress', id, change[3])
    if not job.run then
      -- Claims look for progress only where there is a run.
      call('HSET', base .. ':runs', id, blank_run(job.place))
    elseif count_at(job.run, STARTS) == 0 then
      call('HSET', base .. ':runs', id, sub(job.run, 1, STARTS - 1) .. char(EARLY_PROGRESS) .. sub(job.run, STARTS + 1))
    end
    progress[#progress + 1] = '["' .. id .. '",{"progress":' .. change[3] .. '}]'
  end
  if change[4] then
    call('HSET', base .. ':jobs', id, with_data(job.value, change[4]))
    changed[#changed + 1] = '["' .. id .. '",{"data":true}]'
  end
  if #change[5] > 0 then
    log(id, change[5], change[6])
  end
  if change[7] ~= '' and job.state == '{{ACTIVE}}' then
    local run = call('HGET', base .. ':runs', id)
    call('HSET', base .. ':runs', id, sub(run, 1, FINISHED_AT - 1) .. (change[7] == 'alone' and ALONE or NEVER)
      .. sub(run, STARTED_AT))
  end
  if change[8] and job.state == '{{ACTIVE}}' then
    local run = call('HGET', base .. ':runs', id)
    call('HSET', base .. ':runs', id, sub(run, 1, STARTED_AT - 1) .. with_counters(run, nil, pack_count(0)))
  end
  if change[9] then
    write_marks(job, change)
  end
end

for i = 1, #changes do
  local job = load_job(q, changes[i][1])
  answers[i] = verdict(changes[i], job)
  if sub(answers[i], 1, 1) == '{{DONE}}' then
    if given_children and not new_flows().add_children(given_children, i, job) then
      answers[i] = '{{REFUSED}}' .. STATE_CODES[job.state]
    else
      apply(given_children and load_job(q, job.id) or job, changes[i])
    end
  end
end
if #progress > 0 then
  announce_all(q, '{{PROGRESS}}', nil, progress)
end
if #changed > 0 then
  announce_all(q, '{{CHANGED}}', nil, changed)
end
if q.notices then
  announce_notices(q)
end
if q.step and q.step.is_shared then
  in_flows().conclude(q)
  notice_drained(q)
end
local new_queues = given_children and new_flows().close_child_updates(given_children)
close_queue(q)
return { table.concat(answers), new_queues or {} }
