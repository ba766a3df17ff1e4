-- Looks which bundles are in the outbox.
-- Takes the queue's base; their senders, each of which begins with name and token; the width of these two.
-- Returns 1 for each that is there, else 0.
local senders, width, answers = cmsgpack.unpack(ARGV[1]), tonumber(ARGV[2]), {}
for i, sender in ipairs(senders) do
  local stored = redis.call('HGET', KEYS[1] .. ':outbox', string.sub(sender, 1, width))
  answers[i] = stored and string.sub(stored, 1, width) == string.sub(sender, width + 1, 2 * width) and 1 or 0
end
return answers
