-- Writes an event of the application's own.
-- Takes the queue, which need not be there, the event's name (json) and data (json, an object), the instant, and whether it may wake
-- listeners.
-- Returns the wakes as `wake` says them.
CREATE OR REPLACE FUNCTION ropeway.publish(
    queue_name text, event text, data text, at bigint DEFAULT NULL, may_wake boolean DEFAULT NULL, OUT wakes text[]
)
LANGUAGE plpgsql AS $$
DECLARE
    s ropeway.step;
    instant bigint := ropeway.clock(at);
BEGIN
    s := ropeway.told(
        s, ropeway.entry('published', instant, NULL, NULL, '{"name":' || event || ',"data":' || data || '}'), 1
    );
    wakes := ropeway.write(s, ropeway.queue_id(queue_name), instant, false, may_wake);
END
$$;
