-- Adds to a step's counters that jobs moved between two states.
-- Takes the step, the states (null: the job does not exist), and how many jobs.
-- Returns the step.
CREATE OR REPLACE FUNCTION ropeway.count_move(
    INOUT s ropeway.step, source ropeway.state, target ropeway.state, amount integer DEFAULT 1
)
LANGUAGE plpgsql AS $$
BEGIN
    s.waiting := coalesce(s.waiting, 0)
        - CASE WHEN source = 'waiting' THEN amount ELSE 0 END + CASE WHEN target = 'waiting' THEN amount ELSE 0 END;
    s.delayed := coalesce(s.delayed, 0)
        - CASE WHEN source = 'delayed' THEN amount ELSE 0 END + CASE WHEN target = 'delayed' THEN amount ELSE 0 END;
    s.active := coalesce(s.active, 0)
        - CASE WHEN source = 'active' THEN amount ELSE 0 END + CASE WHEN target = 'active' THEN amount ELSE 0 END;
    s.completed := coalesce(s.completed, 0)
        - CASE WHEN source = 'completed' THEN amount ELSE 0 END + CASE WHEN target = 'completed' THEN amount ELSE 0 END;
    s.failed := coalesce(s.failed, 0)
        - CASE WHEN source = 'failed' THEN amount ELSE 0 END + CASE WHEN target = 'failed' THEN amount ELSE 0 END;
    s.cancelled := coalesce(s.cancelled, 0)
        - CASE WHEN source = 'cancelled' THEN amount ELSE 0 END + CASE WHEN target = 'cancelled' THEN amount ELSE 0 END;
    s.waiting_children := coalesce(s.waiting_children, 0)
        - CASE WHEN source = 'waiting-children' THEN amount ELSE 0 END
        + CASE WHEN target = 'waiting-children' THEN amount ELSE 0 END;
END
$$;
