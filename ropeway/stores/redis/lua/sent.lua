-- Takes a bundle out of the outbox, when it has arrived.
-- Takes the queue's base; the bundle's token.
-- Returns 1 if it was there.
return redis.call('HDEL', KEYS[1] .. ':outbox', ARGV[1])
