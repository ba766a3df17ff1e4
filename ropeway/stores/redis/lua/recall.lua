-- Reads the records of a kind, or one of them.
-- Takes the hash of the kind; [now, key or false].
-- Returns keys and records (packed) in turn; expired ones are left out.
-- Uses: clock
local now, key = unpack(cmsgpack.unpack(ARGV[1]))
now = now or server_time()
local found, kept = nil, {}
if key then
  local stored = call('HGET', KEYS[1], key)
  found = stored and { key, stored } or {}
else
  found = call('HGETALL', KEYS[1])
end
for i = 1, #found, 2 do
  local expires_at = cmsgpack.unpack(found[i + 1])[2]
  if not expires_at or expires_at > now then
    kept[#kept + 1] = found[i]
    kept[#kept + 1] = found[i + 1]
  end
end
return kept
