-- Removes a record.
-- Takes the hash of its kind, the set of expiring ones; [kind, key].
-- Returns 1 if it was there and had not expired.
-- Uses: clock, small_records
local kind, key = unpack(cmsgpack.unpack(ARGV[1]))
local stored = call('HGET', KEYS[1], key)
local record = stored and record_of(stored)
local expires_at = record and record[2]
call('HDEL', KEYS[1], key)
call('ZREM', KEYS[2], cmsgpack.pack({ kind, key }))
return stored and (not expires_at or expires_at > server_time()) and 1 or 0
