-- Reads the records of a kind, or one of them. They are not taken apart here: who does that can say which is damaged.
-- Takes the hash of the kind; [now, key or false].
-- Returns the clock, and keys and records (packed) in turn, expired ones too.
-- Uses: clock
local now, key = unpack(cmsgpack.unpack(ARGV[1]))
local found
if key then
  local stored = call('HGET', KEYS[1], key)
  found = stored and { key, stored } or {}
else
  found = call('HGETALL', KEYS[1])
end
return { now or server_time(), found }
