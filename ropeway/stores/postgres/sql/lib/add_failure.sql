-- Stores a failed attempt, and deletes the oldest ones beyond the number that the job keeps.
-- Takes the job's sequence number, attempt, when that began, worker, reason, trace, how many to keep, and the instant.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.add_failure(
    job_seq bigint, attempt integer, began_at bigint, worker text, reason text, trace text, keeps integer, instant bigint
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    newest integer;
BEGIN
    SELECT coalesce(max(f.number), 0) + 1 INTO newest FROM ropeway.failure AS f WHERE f.seq = job_seq;
    INSERT INTO ropeway.failure (seq, started_at, at, number, attempt, worker, reason, trace)
    VALUES (job_seq, began_at, instant, newest, attempt, worker, reason, trace);
    DELETE FROM ropeway.failure AS f WHERE f.seq = job_seq AND f.number <= newest - keeps;
END
$$;
