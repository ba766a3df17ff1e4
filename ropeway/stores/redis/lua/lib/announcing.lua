-- Further events: jobs with details, and the end of all work.
-- Uses: events

-- The same for jobs announced one by one.
local function announce_all(q, what, to, jobs, detail)
  announce(q, what, to, #jobs, table.concat(jobs, ','), detail)
end

local function notice_drained(q)
  if q.busy > 0 and q.row[WAITING] + q.row[ACTIVE] == 0 then
    announce(q, '{{DRAINED}}', nil, 0)
  end
end
