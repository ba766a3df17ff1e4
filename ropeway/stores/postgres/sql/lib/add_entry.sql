-- Adds an entry to a step.
-- Takes the step, the entry, and how many events it is.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.add_entry(INOUT s ropeway.step, entry text, events integer)
LANGUAGE plpgsql AS $$
BEGIN
    s.entries := concat_ws(',', s.entries, entry);
    s.events := coalesce(s.events, 0) + events;
END
$$;
