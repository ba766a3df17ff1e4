-- Removal of jobs in any state, one by one.
-- Uses: telling, leaving, endings, revoking
local function remove(q, jobs, is_silent)
  local ids, told = {}, {}
  for i = 1, #jobs do
    local job = jobs[i]
    leave(q, job)
    if job.state == 'active' then
      revoke(q, job.id, job.run, 'removed')
      if q.row[MAX_ACTIVE] > 0 then
        wake(q, 'jobs')
      end
    end
    count(q, COUNTERS[job.state], nil, 1)
    ids[i] = job.id
    told[i] = '["' .. job.id .. '",{"prev":"' .. job.state .. '"}]'
  end
  if #ids > 0 then
    erase(q, ids)
    if not is_silent then
      announce_all(q, 'remove', nil, told)
    end
  end
  return ids
end
