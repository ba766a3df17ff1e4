-- Stores jobs from the outbox of a queue in another slot, once.
-- Takes the queue's base; what `add` takes; [now, sender, when they were on their way at the latest, how long they may be].
-- Returns what `add` returns; 0 if they had arrived, 1 if they come too late.
-- Uses: bundles, clock
-- Rarely: promotion, repeated_claims
-- In flows: flow_bundles
local given, sender, began, longest = unpack(cmsgpack.unpack(ARGV[3]))
local arrived, at = KEYS[1] .. ':arrived', given or server_time()
if call('ZSCORE', arrived, sender) or call('ZSCORE', KEYS[1] .. ':delivered', sender) then
  return 0
end
-- A clock that was set back says nothing about how long it was.
if at < began or at - began > longest then
  return 1
end
local now, names, bundles, number_of_queues, only_looks = unpack(cmsgpack.unpack(ARGV[1]))
local answer = add_bundles(now, names, bundles, number_of_queues, only_looks, ARGV[2])
call('ZADD', arrived, whole(at), sender)
return answer
