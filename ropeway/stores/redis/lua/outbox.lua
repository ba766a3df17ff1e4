-- Reads what is on its way to queues of other slots.
-- Takes the queue's base; names, if only these are wanted.
-- Returns names and bundles (a token, and what is packed) in turn, some of them.
if #ARGV > 0 then
  local found = {}
  for i = 1, #ARGV do
    local stored = redis.call('HGET', KEYS[1] .. ':outbox', ARGV[i])
    if stored then
      found[#found + 1] = ARGV[i]
      found[#found + 1] = stored
    end
  end
  return found
end
local found = redis.call('HSCAN', KEYS[1] .. ':outbox', 0, 'COUNT', 100)
return found[2]
