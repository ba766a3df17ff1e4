-- Stores jobs and does work from the outbox of a queue in another slot, once.
-- Takes the queue's base; what `add` takes, with items of work (see lib/steps.lua) behind it; [now, sender, when they
-- were on their way at the latest, how long they may be].
-- Returns what `add` returns, and names and texts of what went into the outbox; 0 if they had arrived, 1 if they come too
-- late.
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
local now, names, bundles, _, _, rare, work = unpack(cmsgpack.unpack(ARGV[1]))
-- What an older release put into the outbox has no such list.
rare = rare or {}
local q = open_queue(KEYS[1], now or given)
q.is_delivery = true
local answer = #bundles > 0 and add_all({ q }, names, bundles, false, ARGV[2], rare) or { '', {} }
local conflict = string.find(answer[1], '{{CONFLICT}}', 1, true)
if work or conflict then
  answer[3] = in_flows().receive_work(q, work or {}, conflict and bundles or {}, rare, answer[1])
  notice_drained(q)
end
close_queue(q)
call('ZADD', arrived, whole(at), sender)
return answer
