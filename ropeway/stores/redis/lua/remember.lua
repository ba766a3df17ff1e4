-- Writes a small versioned record.
-- Takes the hash of its kind, the set of expiring ones; [now, kind, key, value, expected version, lasting].
-- Returns whether it was written, and the record as it stands now (packed) or nil.
-- Uses: room, clock, small_records
local now, kind, key, value, expect, lasting = unpack(cmsgpack.unpack(ARGV[1]))
now = now or server_time()
local stored = call('HGET', KEYS[1], key)
local record = stored and record_of(stored)
-- One that cannot be read has no version to go by; whoever expects none puts another in its place.
if stored and not record and expect then
  error('Bad data format')
end
if record and record[2] and record[2] <= now then
  record = nil
end
local version = record and record[1] or 0
if expect and expect ~= version then
  return { 0, record and stored or false }
end
local expires_at = lasting and math.min(now + lasting, {{LAST_INSTANT}}) or false
local written, member = cmsgpack.pack({ version + 1, expires_at, value }), cmsgpack.pack({ kind, key })
call('HSET', KEYS[1], key, written)
if expires_at then
  call('ZADD', KEYS[2], expires_at, member)
else
  call('ZREM', KEYS[2], member)
end
return { 1, written }
