-- A server whose memory is full refuses whatever may take more, but not to a script that has written before. What makes
-- room in the end, and what keeps running jobs alive until then, writes this first: it removes a key that is never there.
redis.call('UNLINK', KEYS[1] .. ':room')
