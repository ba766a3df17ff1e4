-- Stores jobs and does work from the outbox of a queue in another slot, once.
-- Takes the queue's base; what `add` takes, with items of work (see lib/steps.lua) behind it; [now, sender, when they
-- were on their way at the latest, how long they may be].
-- Returns codes and new queues as `add`, names and texts of what went into the outbox, and holders of keys as `add`; 0 if
-- they had arrived, 1 if they come too late.
-- Uses: bundles, clock
-- Rarely: promotion, repeated_claims
-- In flows: deliveries
-- New flows: flow_bundles
-- With rules: leaving, expiry, dedupe
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
local rare_of = spread(rare or {})
local q = open_queue(KEYS[1], now or given)
q.is_delivery = true
local answer = #bundles > 0 and add_all({ q }, names, bundles, false, ARGV[2], rare_of) or { '', q.is_new and { 1 } or {} }
local number, refused, holders = 0, {}, answer[3] or {}
for _, bundle in ipairs(bundles) do
  for _, job in ipairs(bundle) do
    number = number + 1
    local from = rare_of[number] and rare_of[number][FROM]
    if from and sub(answer[1], number, number) == '{{CONFLICT}}' then
      refused[#refused + 1] = { job[ID], from }
    end
  end
end
answer[3], answer[4] = {}, holders
if work or #refused > 0 or (q.step and q.step.is_shared) then
  answer[3] = in_flows().receive_work(q, work or {}, refused)
  notice_drained(q)
end
close_queue(q)
call('ZADD', arrived, whole(at), sender)
return answer
