-- Cancels jobs that are not yet final, running ones included.
-- Takes the queue's base; [now, ids, reason, reason as JSON, default options] with false for no reason.
-- Returns an answer code for each id: the verdict and the state before.
-- Uses: room, announcing, leaving_states, changing, revoking, options
-- In flows: flows
-- With rules: leaving, expiry
local now, ids, reason, reason_json, defaults = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, answers, seen = q.base, {}, {}
local cancelled = begin_ending(q, '{{CANCEL}}', '{{CANCELLED}}', reason and '{"reason":' .. reason_json .. '}' or nil)

local function cancel(job)
  local id, run = job.id, job.run or blank_run(job.place)
  local keep = read_stored_options(q, job.value, defaults).keep
  leave_state(q, job)
  if job.state == '{{ACTIVE}}' then
    revoke(q, id, run, '{{CANCELLED}}')
    if q.row[MAX_ACTIVE] > 0 then
      wake(q, 'jobs')
    end
  end
  if reason then
    call('HSET', base .. ':reasons', id, reason)
  else
    call('HDEL', base .. ':reasons', id)
  end
  count(q, COUNTERS[job.state], nil, 1)
  end_job(cancelled, id, sub(without_token(run), STARTED_AT), keep, '{"prev":"' .. job.state .. '"}',
    reason or '')
end

for i = 1, #ids do
  local job = load_job(q, ids[i])
  if not job then
    answers[i] = '{{MISSING}}'
  elseif job.state == '{{CANCELLED}}' or seen[ids[i]] then
    answers[i] = '{{DONE}}' .. STATE_CODES['{{CANCELLED}}']
  elseif IS_FINAL[job.state] then
    answers[i] = '{{REFUSED}}' .. STATE_CODES[job.state]
  else
    answers[i], seen[ids[i]] = '{{DONE}}' .. STATE_CODES[job.state], true
    cancel(job)
  end
end
write_ending(q, cancelled)
if q.step then
  in_flows().conclude(q)
end
apply_retention(q, cancelled)
notice_drained(q)
close_queue(q)
return table.concat(answers)
