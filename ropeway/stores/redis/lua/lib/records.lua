-- Whole jobs for the client: a MessagePack array in the order of `JobRecord`.
local RECORD = '\220\0\23'

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
  local is_active = job.state == 'active'
  return sub(run, MADE, TOKEN - 1) .. due .. token .. worker .. or_nil(sub(run, STARTED_AT, RENEWED_AT - 1))
    .. or_nil(sub(run, RENEWED_AT, MADE - 1)) .. (is_active and limit or NIL) .. or_nil(finished)
    .. ((is_active or finished == NEVER) and NIL or limit) .. text_or_nil(reason) .. text_or_nil(progress)
    .. text_or_nil(result)
end

local function pack_record(q, job, reason, progress, result)
  local value = job.value
  return RECORD .. q.name .. pack_text(job.id) .. sub(value, 1, -24) .. pack_text(job.state) .. sub(value, -23)
    .. pack_rest(job, reason, progress, result)
end

local function pack_list(pieces)
  return '\221' .. struct.pack('>I4', #pieces) .. table.concat(pieces)
end

-- Many jobs by id, as packed records; false where there is none.
local function records_of(q, ids)
  local base = q.base
  local values, runs = fields_of(base .. ':jobs', ids), fields_of(base .. ':runs', ids)
  local reasons, progress = fields_of(base .. ':reasons', ids), fields_of(base .. ':progress', ids)
  local results, records = fields_of(base .. ':results', ids), {}
  for i = 1, #ids do
    local value, run, record = values[i], runs[i], false
    if value then
      local job = { id = ids[i], value = value, run = run, state = run and STATES[sub(run, 1, 1)] }
      if not job.state then
        job.due = q.row[DELAYED] > 0 and call('ZSCORE', base .. ':delayed', sub(place_of(value), 7) .. ids[i])
        job.state = job.due and 'delayed' or 'waiting'
      end
      record = pack_record(q, job, reasons[i], progress[i], results[i])
    end
    records[i] = record
  end
  return records
end
