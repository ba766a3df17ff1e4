-- Marks of jobs for the client: see lib/stored_marks.lua.
-- Uses: records, stored_marks
-- Fields of a record between its result and its marks, for jobs that lack them.
local BETWEEN = { '\144', '\144', '\0', NIL }

local function read_hash(key)
  local stored, pieces = call('HGETALL', key), {}
  for i = 1, #stored, 2 do
    pieces[(i + 1) / 2] = '\147' .. pack_text(stored[i]) .. stored[i + 1]
  end
  return '\221' .. struct.pack('>I4', #pieces) .. table.concat(pieces)
end

-- The marks of those jobs that may have any, as a field of their records, by the place of each; also returns their ids.
local function marks_of(q, ids, runs)
  local found, flagged, places = stored_marks(q, ids, runs)
  for i = 1, #flagged do
    local stored = found[places[i]]
    found[places[i]] = stored == '' and read_hash(q.base .. ':marks:' .. flagged[i]) or stored or '\144'
  end
  return found, flagged
end

-- What `read_extras` returns, with marks behind it, if there are some.
local function add_marks(marks, fields, pieces)
  if not marks then
    return fields, pieces
  end
  return FIELDS + #BETWEEN + 1, pieces .. table.concat(BETWEEN, '', fields - FIELDS + 1) .. marks
end
