-- Raises an error for a damaged job: every job has a row in the table of its state.
-- Takes the job's id.
-- Returns never.
CREATE OR REPLACE FUNCTION ropeway.raise_no_state(job_id text) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    RAISE data_corrupted USING MESSAGE = 'job ' || quote_literal(job_id)
        || ' has a row in the table job and none in active, waiting, later or finished: delete the first';
END
$$;
