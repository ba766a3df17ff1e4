-- Lets delayed jobs wait now.
-- Takes the queue's base; [now, ids].
-- Returns an answer code for each id: the verdict and the state before.
-- Uses: promotion
-- In flows: flows
-- With rules: leaving, expiry
local now, ids = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local answers, members, seen = {}, {}, {}
for i = 1, #ids do
  local job = load_job(q, ids[i])
  if not job then
    answers[i] = '{{MISSING}}'
  elseif job.state == '{{DELAYED}}' and not seen[ids[i]] then
    answers[i] = '{{DONE}}' .. STATE_CODES[job.state]
    seen[ids[i]] = true
    members[#members + 1] = sub(job.place, 4) .. job.id
  else
    answers[i] = '{{REFUSED}}' .. STATE_CODES[seen[ids[i]] and '{{WAITING}}' or job.state]
  end
end
if #members > 0 then
  promote(q, members)
end
close_queue(q)
return table.concat(answers)
