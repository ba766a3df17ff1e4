-- Writes schedules, and adds and removes jobs of theirs.
-- Takes the queue's base; [now, names, what jobs have rarely, for each schedule [id, value or false, next_at or false,
-- expected version or false, jobs, ids of jobs to remove]] (see lib/bundle_fields.lua); the jobs' texts, one after the other.
-- Returns for each schedule 1, or 0 if it has another version, its value as it is stored now, or an empty text, and codes and
-- holders of its jobs as `add`; behind that whether the queue is new.
-- Uses: schedules
-- Rarely: bundles, promotion, repeated_claims
-- In flows: flows
-- New flows: flow_bundles
-- With rules: leaving, expiry, dedupe
local now, names, rare, writes = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local is_new, jobs_of = q.is_new, read_adds(writes, rarely().spread(rare), ARGV[2])
local answers, has_written = {}, false
for i = 1, #writes do
  answers[i] = write_schedule(q, names, writes[i], jobs_of[i])
  has_written = has_written or answers[i][1] == 1
end
if q.step then
  in_flows().conclude(q)
end
if has_written then
  wake(q, 'schedules')
end
notice_drained(q)
close_queue(q)
return { answers, is_new and 1 or 0 }
