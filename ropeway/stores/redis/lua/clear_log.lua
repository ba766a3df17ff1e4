-- Drops the oldest lines of a job's log. How many were ever written stays noted, so that lines keep their numbers.
-- Takes the queue's base; [id, how many lines stay].
-- Returns an answer code: the verdict and the job's state.
-- Uses: jobs
local id, keep = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], 0)
local job, log = load_job(q, id), q.base .. ':log:' .. id
if not job then
  return '{{MISSING}}'
end
if keep > 0 then
  call('LTRIM', log, whole(-keep), -1)
else
  call('UNLINK', log)
end
return '{{DONE}}' .. STATE_CODES[job.state]
