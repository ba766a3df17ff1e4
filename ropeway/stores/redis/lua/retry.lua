-- Lets finished jobs wait for one more run.
-- Takes the queue's base; [now, ids, whether counters are reset].
-- Returns an answer code for each id: the verdict and the state before.
-- Uses: events, leaving_states, changing
local now, ids, reset = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, answers, announced = q.base, {}, {}

local function retry(job)
  local id, none = job.id, reset and NONE or nil
  leave_state(q, job)
  local run = without_token(waiting_run(job.run, none, none))
  if reset then
    run = sub(run, 1, STARTS - 1) .. NONE .. sub(run, STALLED)
  end
  call('HSET', base .. ':runs', id, run)
  for _, what in ipairs({ ':results', ':reasons', ':progress' }) do
    call('HDEL', base .. what, id)
  end
  put_in_line(q, name_of(job.value), { job.place .. id })
  count(q, COUNTERS[job.state], WAITING, 1)
  announced[#announced + 1] = id
end

for i = 1, #ids do
  local job = load_job(q, ids[i])
  answers[i] = job and (IS_FINAL[job.state] and '{{DONE}}' or '{{REFUSED}}') .. STATE_CODES[job.state] or '{{MISSING}}'
  if sub(answers[i], 1, 1) == '{{DONE}}' then
    retry(job)
  end
end
if #announced > 0 then
  announce(q, '{{RETRY_BY_HAND}}', '{{WAITING}}', #announced, each(announced, 'null'))
  wake(q, 'jobs')
end
close_queue(q)
return table.concat(answers)
