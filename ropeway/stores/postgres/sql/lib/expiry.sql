-- When a job expires that ends now.
-- Takes the instant, and the age and count of its retention (null: no limit).
-- Returns null if it is kept for ever; the last instant of all if only a count removes it.
CREATE OR REPLACE FUNCTION ropeway.expiry(instant bigint, age bigint, count bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN age IS NOT NULL THEN least(instant + age, {{LAST_INSTANT}})
        WHEN count IS NOT NULL THEN {{LAST_INSTANT}}
    END
$$;
