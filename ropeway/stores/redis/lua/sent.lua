-- Takes a bundle out of the outbox, when it has arrived.
-- Takes the queue's base; the bundle's name and token.
-- Returns 1 if it was there. The same bundle of another add has another token, and stays.
local stored = redis.call('HGET', KEYS[1] .. ':outbox', ARGV[1])
if stored and string.sub(stored, 1, #ARGV[2]) == ARGV[2] then
  return redis.call('HDEL', KEYS[1] .. ':outbox', ARGV[1])
end
return 0
