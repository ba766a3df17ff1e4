-- Marks as they are stored.
--
-- A value of `marks` is the field of a record that has the marks of the job, as the client decodes it. It is written again with
-- each mark, so it may not become large: beyond that it is empty, and the marks are in a hash of the job, `marks:` and its
-- id, from names to values and times; an entry in `past` says that this is removed with the job. A value of `awaited` is
-- the name of the mark that ends the delay of a job. It means something only while the job is delayed: the next claim
-- deletes it, or the next retry by hand, and no job is delayed again without one of them. The byte at MADE of a job's run,
-- WITH_MARKS, says that it may have marks or wait for one (see lib/runs.lua).
-- Uses: runs

-- The values of `marks` of jobs, by the place of each; also returns the ids of those that may have some, and their places.
local function stored_marks(q, ids, runs)
  local places, flagged, found = {}, {}, {}
  for i = 1, #ids do
    if runs[i] and byte(runs[i], MADE) == WITH_MARKS then
      places[#places + 1], flagged[#flagged + 1] = i, ids[i]
    end
  end
  local stored = fields_of(q.base .. ':marks', flagged)
  for i = 1, #flagged do
    found[places[i]] = stored[i]
  end
  return found, flagged, places
end
