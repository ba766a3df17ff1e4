-- The file's side of its -inbox.

-- statement: key
SELECT key FROM inbox;

-- statement: ingested
SELECT ingested FROM inbox;

-- statement: note_ingested
-- Takes :ingested.
UPDATE inbox SET ingested = :ingested;
