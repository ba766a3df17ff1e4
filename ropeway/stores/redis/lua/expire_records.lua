-- Removes records whose time is over.
-- Takes the set of expiring ones, and the beginning of the keys of kinds; [now].
-- Returns how many there were.
-- Uses: clock
local now = cmsgpack.unpack(ARGV[1])[1] or server_time()
local members = call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1000)
for i = 1, #members do
  local kind, key = unpack(cmsgpack.unpack(members[i]))
  call('HDEL', KEYS[2] .. kind, key)
end
call_with('ZREM', KEYS[1], members)
return #members
