-- The history of failed attempts.
-- Uses: jobs

-- Keeps the newest `most` failed attempts of a job.
local function remember_failure(q, id, run, reason, trace, most)
  local list = q.base .. ':failures:' .. id
  local _, worker = holder_of(run)
  if most > 0 then
    call('RPUSH', list, '\150' .. sub(run, STARTS, STARTS + 4) .. pack_time(q.now) .. worker .. pack_text(reason)
      .. pack_text(trace) .. sub(run, STARTED_AT, RENEWED_AT - 1))
    call('LTRIM', list, -most, -1)
    call('HSETNX', q.base .. ':past', id, 0)
  else
    call('UNLINK', list)
  end
end
