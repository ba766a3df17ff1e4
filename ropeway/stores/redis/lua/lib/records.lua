-- Whole jobs for the client: MessagePack arrays in the order of `JobRecord`, without the last fields if a job has none.
-- Uses: extras
local FIELDS = 23

local function or_nil(piece)
  return piece == NEVER and NIL or piece
end

local function text_or_nil(text)
  return text and pack_text(text) or NIL
end

local FRESH = NONE .. NONE .. NONE .. NIL .. NIL .. NIL .. NIL .. NIL .. NIL .. NIL .. NIL .. NIL .. NIL .. NIL

-- What follows created_at.
local function pack_rest(job, reason, progress, result)
  local run, due = job.run, job.due and pack_time(tonumber(job.due)) or NIL
  if not run then
    return due == NIL and FRESH or NONE .. NONE .. NONE .. due .. sub(FRESH, 17)
  end
  local limit, finished = sub(run, UNTIL, FINISHED_AT - 1), sub(run, FINISHED_AT, STARTED_AT - 1)
  local token, worker = holder_of(run)
  local is_active = job.state == '{{ACTIVE}}'
  finished = is_active and NEVER or finished
  return sub(run, MADE, TOKEN - 1) .. due .. token .. worker .. or_nil(sub(run, STARTED_AT, RENEWED_AT - 1))
    .. or_nil(sub(run, RENEWED_AT, MADE - 1)) .. (is_active and limit or NIL) .. or_nil(finished)
    .. ((is_active or finished == NEVER) and NIL or or_nil(limit)) .. text_or_nil(reason) .. text_or_nil(progress)
    .. text_or_nil(result)
end

-- How many fields a job's record has, and the pieces of its last ones.
local function read_extras(extras)
  if not extras then
    return FIELDS, ''
  end
  return FIELDS + byte(extras) - 144, sub(extras, 2)
end
