-- Lets finished jobs wait for one more run.
-- Takes the queue's base; [now, ids, whether counters are reset, names and values of marks that they get,
-- names of marks that they lose].
-- Returns an answer code for each id: the verdict and the state before.
-- Uses: jobs, changing
-- In flows: flows
-- With marks: marking
-- With rules: leaving, expiry
local now, ids, reset, marks, forgotten = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local answers = {}
for i = 1, #ids do
  local job = load_job(q, ids[i])
  answers[i] = job and (IS_FINAL[job.state] and '{{DONE}}' or '{{REFUSED}}') .. STATE_CODES[job.state] or '{{MISSING}}'
  if sub(answers[i], 1, 1) == '{{DONE}}' then
    in_flows().retry(q, job, reset)
    if #marks + #forgotten > 0 then
      local runs = { call('HGET', q.base .. ':runs', job.id) }
      call_with('HSET', q.base .. ':runs', with_marks().mark(q, { job.id }, runs, { { marks, forgotten } }))
    end
  end
end
if q.step then
  in_flows().conclude(q)
end
close_queue(q)
return table.concat(answers)
