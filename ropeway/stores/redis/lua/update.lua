-- Writes down progress, data and log lines of jobs.
-- Takes the queue's base; [now, [[id, token, progress, data, [line], keep_logs, mark]]] with false for what is not given;
-- the mark says of an active job that it runs 'alone' in its process, or 'beside' others, or is empty. If jobs get
-- children: bases of their queues after the first, and what `read_births` takes.
-- Returns an answer code for each change, its verdict and the job's state; and the numbers of queues that are new.
-- Uses: announcing, changing
-- Rarely: bundles, promotion, repeated_claims
-- In flows: births
local now, changes = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local births = ARGV[2] and in_flows().read_births(q, ARGV[2], ARGV[3])
local base, answers, progress, changed = q.base, {}, {}, {}

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

local function apply(job, change)
  local id = job.id
  if change[3] then
    call('HSET', base .. ':progress', id, change[3])
    if not job.run then
      -- Claims look for progress only where there is a run.
      call('HSET', base .. ':runs', id, blank_run(job.place))
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
end

for i = 1, #changes do
  local job = load_job(q, changes[i][1])
  answers[i] = verdict(changes[i], job)
  if sub(answers[i], 1, 1) == '{{DONE}}' then
    if births and not in_flows().add_children(births, i, job) then
      answers[i] = '{{REFUSED}}' .. STATE_CODES[job.state]
    else
      apply(births and load_job(q, job.id) or job, changes[i])
    end
  end
end
if #progress > 0 then
  announce_all(q, '{{PROGRESS}}', nil, progress)
end
if #changed > 0 then
  announce_all(q, '{{CHANGED}}', nil, changed)
end
local new_queues = births and in_flows().close_births(births)
close_queue(q)
return { table.concat(answers), new_queues or {} }
