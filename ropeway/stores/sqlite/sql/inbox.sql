-- The file's side of its -inbox.

-- statement: tag
SELECT tag FROM inbox;

-- statement: taken
SELECT taken FROM inbox;

-- statement: take
-- Takes :taken.
UPDATE inbox SET taken = :taken;
