-- Claimed jobs that have a run already: because of an earlier attempt, or because of extras.
-- Uses: records, marks
local COUNTERS_OF_NEW = NONE .. NONE .. char(WITH_EXTRAS) .. sub(NONE, 2)

-- Collects such jobs of one claim; `times` and `holder` are pieces of their runs.
local function begin_again(times, holder)
  local again, known, number = { numbers = {}, ids = {}, runs = {}, is_new = {}, folded = {} }, {}, 0

  -- The run of a job that starts now, without its place; `at` is its number in the claim.
  function again.start(at, id, before)
    local counters = COUNTERS_OF_NEW
    if is_folded(before) then
      again.folded[#again.folded + 1], again.folded[#again.folded + 2] = id, extras_of_key(before)
    else
      counters = sub(before, MADE, TOKEN - 1)
    end
    local run = known[counters]
    if not run then
      run = times .. sub(counters, 1, 5) .. pack_count(unpack_count(sub(counters, 6, 10)) + 1) .. sub(counters, 11) .. holder
      known[counters] = run
    end
    number = number + 1
    again.numbers[number], again.ids[number], again.runs[number] = at, id, run
    again.is_new[number] = counters == COUNTERS_OF_NEW
    return run
  end

  return again
end

-- Reasons and progress. A new job has none: progress that came before the first claim marks its run (see lib/runs.lua).
local function words_of(q, again)
  local asked, at, reasons, progress = {}, {}, {}, {}
  for i = 1, #again.ids do
    if not again.is_new[i] then
      asked[#asked + 1], at[#at + 1] = again.ids[i], i
    end
  end
  local found_reasons, found_progress = fields_of(q.base .. ':reasons', asked), fields_of(q.base .. ':progress', asked)
  for i = 1, #asked do
    reasons[at[i]], progress[at[i]] = found_reasons[i], found_progress[i]
  end
  return reasons, progress
end

-- What follows created_at in the records of these jobs: [number of the first, of the last, rest] for jobs that follow each
-- other and have the same, as siblings have. A rest begins with the number of fields of the record, in one byte.
local function pack_rests(q, again)
  local reasons, progress = words_of(q, again)
  call_with('HSET', q.base .. ':extras', again.folded or {})
  local extras, known, rests, last = extras_of(q, again.ids, again.runs) or {}, {}, {}, nil
  local marks, marked = marks_of(q, again.ids, again.runs)
  -- From now on they wait for none.
  call_with('HDEL', q.base .. ':awaited', marked)
  for i = 1, #again.ids do
    local run, own, number = again.runs[i], extras[i] or '', again.numbers[i]
    local is_usual = not (reasons[i] or progress[i] or marks[i])
    local of_run = known[run] or {}
    known[run] = of_run
    local rest = is_usual and of_run[own]
    if not rest then
      local fields, pieces = add_marks(marks[i], read_extras(extras[i]))
      rest = char(fields) .. pack_rest({ run = run .. ANY_PLACE, state = '{{ACTIVE}}' }, reasons[i], progress[i]) .. pieces
      of_run[own] = is_usual and rest or nil
    end
    if last and last[3] == rest and last[2] == number - 1 then
      last[2] = number
    else
      last = { number, number, rest }
      rests[#rests + 1] = last
    end
  end
  return rests
end
