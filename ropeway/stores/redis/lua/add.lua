-- Stores bundles of jobs, each whole or not at all.
-- Takes bases of queues; [now, [[name, name as JSON]], [[job]], number of queues, whether it only looks, what jobs
-- have rarely, or the dedupe key of each (see `add_all`)] (see lib/bundle_fields.lua), the jobs' texts one after the other, and what goes into the outbox of the first queue: a name and a text. With answer codes
-- behind that nothing is stored if others would be answered.
-- Returns an answer code for each job (of one letter), the numbers of queues that are new, for each job that was deduplicated
-- the id of the one that holds its key, and names and texts of what went into the outbox.
-- Uses: bundles
-- Rarely: promotion, repeated_claims
-- In flows: flows
-- New flows: flow_bundles
-- With rules: leaving, expiry, dedupe
local now, names, bundles, number_of_queues, only_looks, rare, keys = unpack(cmsgpack.unpack(ARGV[1]))
if ARGV[5] then
  local seen = add_bundles(now, names, bundles, number_of_queues, true, rare, ARGV[2], keys)
  if seen[1] ~= ARGV[5] then
    return seen
  end
end
local answer = add_bundles(now, names, bundles, number_of_queues, only_looks, rare, ARGV[2], keys)
if ARGV[3] then
  call('HSET', KEYS[1] .. ':outbox', ARGV[3], ARGV[4])
end
return answer
