-- Reads the server's clock; that a script runs at all says that the store works.
-- Takes a key of the store.
-- Returns milliseconds since 1970.
-- Uses: clock
return server_time()
