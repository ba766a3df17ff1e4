-- Removes finished jobs that ended long enough ago, oldest first; or others, by ids that the client chose.
-- Takes the queue's base; [now, state, older_than, limit, ids or false].
-- Returns the ids it removed, and whether others remain.
-- Uses: room, removal
-- In flows: flows
-- With rules: leaving, expiry
local now, state, older_than, limit, ids = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local removed, more = {}, false
if ids then
  local jobs = {}
  for i = 1, #ids do
    local job = load_job(q, ids[i])
    if job and job.state == state and select(3, read_tail(job.value)) <= q.now - older_than then
      jobs[#jobs + 1] = job
    end
  end
  removed = remove(q, jobs)
  if q.step then
    in_flows().conclude(q)
  end
else
  -- One more than may go says whether others remain.
  local members =
    call('ZRANGEBYSCORE', q.base .. ':' .. state, '-inf', q.now - older_than, 'LIMIT', 0, limit + 1)
  more = #members > limit
  if more then
    members[#members] = nil
  end
  for i = 1, #members do
    removed[i] = sub(members[i], 8)
  end
  if #members > 0 then
    drop_finished(q, state, members, true)
    call_with('ZREM', q.base .. ':kept:' .. state, members)
  end
end
if #removed > 0 then
  announce(q, '{{CLEANED}}', nil, 0, nil, '{"count":' .. #removed .. ',"state":"' .. state .. '"}')
  notice_drained(q)
end
close_queue(q)
return { removed, more and 1 or 0 }
