-- Reads which senders are to be asked whether they may send again, and forgets those that were asked long ago.
-- Takes the queue's base; [now, after how long they are asked, how long they are kept after that, how many].
-- Returns senders, oldest first.
-- Uses: clock
local given, after, kept, limit = unpack(cmsgpack.unpack(ARGV[1]))
local now = given or server_time()
call('ZREMRANGEBYSCORE', KEYS[1] .. ':delivered', '-inf', '(' .. whole(now - kept))
return call('ZRANGEBYSCORE', KEYS[1] .. ':arrived', '-inf', '(' .. whole(now - after), 'LIMIT', 0, limit)
