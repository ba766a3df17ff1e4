-- Gives a job a new sequence number, so that it waits behind all others of its priority.
-- Takes the queue, the job's id and its sequence number.
-- Returns the new one.
CREATE OR REPLACE FUNCTION ropeway.move_to_back(queue_id integer, job_id text, seq bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    new_seq CONSTANT bigint := nextval('ropeway.job_seq');
BEGIN
    UPDATE ropeway.job AS j SET ord = new_seq WHERE j.queue = queue_id AND j.id = job_id;
    UPDATE ropeway.failure AS f SET seq = new_seq WHERE f.seq = move_to_back.seq;
    UPDATE ropeway.log_line AS l SET seq = new_seq WHERE l.seq = move_to_back.seq;
    RETURN new_seq;
END
$$;
