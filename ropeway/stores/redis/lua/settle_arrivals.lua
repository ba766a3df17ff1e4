-- Notes which senders may send again.
-- Takes the queue's base; [now, senders, for each 1 if its outbox still has what it sent].
-- Returns how many may not.
-- Uses: clock
local given, senders, pending = unpack(cmsgpack.unpack(ARGV[1]))
local now, again, delivered, gone = whole(given or server_time()), {}, {}, {}
for i, sender in ipairs(senders) do
  if pending[i] == 1 then
    -- Asked again after the others.
    again[#again + 1] = now
    again[#again + 1] = sender
  else
    gone[#gone + 1] = sender
    delivered[#delivered + 1] = now
    delivered[#delivered + 1] = sender
  end
end
call_with('ZADD', KEYS[1] .. ':arrived', again)
call_with('ZREM', KEYS[1] .. ':arrived', gone)
call_with('ZADD', KEYS[1] .. ':delivered', delivered)
return #gone
