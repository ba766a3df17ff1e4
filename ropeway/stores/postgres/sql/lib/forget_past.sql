-- Forgets the failures and log lines of jobs that go.
-- Takes their sequence numbers.
-- Returns nothing.
CREATE OR REPLACE FUNCTION ropeway.forget_past(seqs bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(seqs) > 0 THEN
        DELETE FROM ropeway.failure AS f WHERE f.seq = ANY (seqs);
        DELETE FROM ropeway.log_line AS l WHERE l.seq = ANY (seqs);
    END IF;
END
$$;
