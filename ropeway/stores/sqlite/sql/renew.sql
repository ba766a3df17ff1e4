-- Extends locks. Takes :seqs (json), :now, :lock_until.
-- statement: renew
UPDATE active SET lock_until = :lock_until, renewed_at = :now
WHERE seq IN (SELECT value FROM json_each(:seqs));
