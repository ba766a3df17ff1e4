-- Reads what is on its way to queues of other slots.
-- Takes the queue's base.
-- Returns names and bundles (a token, and what is packed) in turn, some of them.
local found = redis.call('HSCAN', KEYS[1] .. ':outbox', 0, 'COUNT', 100)
return found[2]
