-- Removes jobs of any state, one by one.
-- Uses: announcing, leaving_states, endings, revoking
local function remove(q, jobs, is_silent)
  local removed, ids = {}, {}
  for i = 1, #jobs do
    local job = jobs[i]
    leave_state(q, job)
    if job.state == '{{ACTIVE}}' then
      revoke(q, job.id, job.run, '{{REMOVED}}')
      if q.row[MAX_ACTIVE] > 0 then
        wake(q, 'jobs')
      end
    end
    removed[i], ids[#ids + 1] = job.id, job.id
    -- Jobs of one state that follow each other go together.
    if i == #jobs or jobs[i + 1].state ~= job.state then
      drop_jobs(q, job.state, ids, is_silent)
      ids = {}
    end
  end
  return removed
end
