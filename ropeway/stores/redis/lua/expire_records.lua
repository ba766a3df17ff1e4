-- Removes records whose time is over, and names the life of this store: a server that was emptied begins another.
-- Takes the set of expiring ones, the beginning of the keys of kinds, and the key of the life; [now, name of a new life].
-- Returns how many there were, and the name of the life.
-- Uses: room, clock
local now, new_life = unpack(cmsgpack.unpack(ARGV[1]))
local members = call('ZRANGEBYSCORE', KEYS[1], '-inf', now or server_time(), 'LIMIT', 0, {{BATCH}})
for i = 1, #members do
  local kind, key = unpack(cmsgpack.unpack(members[i]))
  call('HDEL', KEYS[2] .. kind, key)
end
call_with('ZREM', KEYS[1], members)
local life = call('GET', KEYS[3])
if not life then
  call('SET', KEYS[3], new_life)
end
return { #members, life or new_life }
