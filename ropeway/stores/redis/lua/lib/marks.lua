-- Marks of jobs: a hash per job, from the name of a mark to its value and time as the client decodes them.
--
-- The byte at MADE of a job's run, WITH_MARKS, says that it may have such a hash (see lib/runs.lua), and its entry in `past`
-- that the hash is removed with it. The field without a name holds the name of the mark that ends the delay of the job. It
-- means something only while the job is delayed: the next claim deletes it, or the next retry by hand, and no job is delayed
-- again without one of them.
-- Uses: records
-- Fields of a record between its result and its marks, for jobs that lack them.
local BETWEEN = { '\144', '\144', '\0', NIL }

-- The marks of a job as the last field of its record, in any order, and whether the field without a name is there.
local function pack_marks(q, id)
  local stored, pieces, awaits = call('HGETALL', q.base .. ':marks:' .. id), {}, false
  for i = 1, #stored, 2 do
    if stored[i] == '' then
      awaits = true
    else
      pieces[#pieces + 1] = '\147' .. pack_text(stored[i]) .. stored[i + 1]
    end
  end
  return '\221' .. struct.pack('>I4', #pieces) .. table.concat(pieces), awaits
end

-- What `read_extras` returns, with marks behind it.
local function add_marks(marks, fields, pieces)
  return FIELDS + #BETWEEN + 1, pieces .. table.concat(BETWEEN, '', fields - FIELDS + 1) .. marks
end
