-- Removes jobs and everything about them.
-- Takes the queue's base; [now, ids, whether active ones go too].
-- Returns an answer code for each id: the verdict and the state before.
-- Uses: room, removal
-- In flows: flows
-- With rules: leaving, expiry
local now, ids, force = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local answers, jobs, seen = {}, {}, {}
for i = 1, #ids do
  local job = not seen[ids[i]] and load_job(q, ids[i])
  if not job then
    answers[i] = '{{MISSING}}'
  elseif job.state == '{{ACTIVE}}' and not force then
    answers[i] = '{{REFUSED}}' .. STATE_CODES[job.state]
  else
    answers[i] = '{{DONE}}' .. STATE_CODES[job.state]
    seen[ids[i]] = true
    jobs[#jobs + 1] = job
  end
end
remove(q, jobs)
if q.step then
  in_flows().conclude(q)
end
notice_drained(q)
close_queue(q)
return table.concat(answers)
