-- Writes an event of the application's own into the stream of a queue.
-- Takes the queue's base; [now, detail as JSON].
-- Returns whether the queue is new.
-- Uses: events
local now, detail = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
announce(q, '{{PUBLISHED}}', nil, 0, nil, detail)
close_queue(q)
return q.is_new and 1 or 0
