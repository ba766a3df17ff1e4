-- Reads whole jobs by their ids.
-- Uses: records

local function pack_record(q, job, reason, progress, result, extras, marks)
  local value = job.value
  local priority, order, created_at = read_tail(value)
  local fields, last = read_extras(extras)
  if marks then
    fields, last = rarely().add_marks(marks, fields, last)
  end
  return '\220\0' .. char(fields) .. q.name .. pack_text(job.id) .. sub(value, 1, -17) .. pack_text(job.state)
    .. struct.pack('>Bi4Bi8BI8', 210, priority, 211, order, 207, created_at)
    .. pack_rest(job, reason, progress, result) .. last
end

local function pack_list(pieces)
  return '\221' .. struct.pack('>I4', #pieces) .. table.concat(pieces)
end

-- Many jobs by id, as packed records; false where there is none. Only scripts that make lib/marks.lua `rarely` want marks.
local function records_of(q, ids, want_marks)
  local base = q.base
  local values, runs = fields_of(base .. ':jobs', ids), fields_of(base .. ':runs', ids)
  local reasons, progress = fields_of(base .. ':reasons', ids), fields_of(base .. ':progress', ids)
  local results, extras, records = fields_of(base .. ':results', ids), extras_of(q, ids, runs) or {}, {}
  local marks = want_marks and rarely().marks_of(q, ids, runs) or {}
  for i = 1, #ids do
    local value, run, record = values[i], runs[i], false
    if value then
      local job = { id = ids[i], value = value, run = run, state = run and RUN_STATES[sub(run, 1, 1)] }
      if not job.state then
        job.due = q.row[DELAYED] > 0 and call('ZSCORE', base .. ':delayed', sub(place_of(value), 4) .. ids[i])
        job.state = job.due and '{{DELAYED}}' or '{{WAITING}}'
      end
      record = pack_record(q, job, reasons[i], progress[i], results[i], extras[i], marks[i])
    end
    records[i] = record
  end
  return records
end
