-- Writes marks of jobs: see lib/stored_marks.lua.
-- Uses: pack, unpack, stored_marks
-- What a marking has: names and values in turn, and names of marks to delete.
local MARKS, FORGOTTEN = 1, 2
-- Bytes of marks that are in one text.
local MOST_PACKED = 4096

-- How the piece of a mark begins, by its name: jobs of one pipeline have the same.
local mark_keys = {}
local function mark_key(name)
  local key = mark_keys[name]
  if not key then
    key = '\147' .. pack_text(name)
    mark_keys[name] = key
  end
  return key
end

-- Makes pieces of the marks of a marking, once for all jobs that share it.
local function pack_marking(marking, stamp)
  local marks, keys, pieces, place_of = marking[MARKS], {}, {}, {}
  for i = 1, #marks, 2 do
    local key = mark_key(marks[i])
    local place = place_of[key] or #keys + 1
    place_of[key], keys[place], pieces[place] = place, key, key .. pack_text(marks[i + 1]) .. stamp
  end
  marking.keys, marking.pieces, marking.known = keys, table.concat(pieces), {}
end

-- The pieces of packed marks, and the name of each.
local function split_marks(packed)
  local pieces, names, at = {}, {}, 6
  while at <= #packed do
    local name, value_at = read_text(packed, at + 1)
    local _, time_at = read_text(packed, value_at)
    pieces[#pieces + 1], names[#names + 1] = sub(packed, at, time_at + 8), name
    at = time_at + 9
  end
  return pieces, names
end

-- Packed marks without some, and with others behind them.
local function replace_marks(packed, gone, more, number)
  local pieces, names = split_marks(packed)
  local kept, is_gone = {}, {}
  for i = 1, #gone do
    is_gone[gone[i]] = true
  end
  for i = 1, #pieces do
    if not is_gone[names[i]] then
      kept[#kept + 1] = pieces[i]
    end
  end
  return '\221' .. struct.pack('>I4', #kept + number) .. table.concat(kept) .. more
end

-- Packed marks after a marking.
local function packed_after(packed, marking)
  local after = marking.known[packed]
  if after then
    return after
  end
  local keys, is_new = marking.keys, #marking[FORGOTTEN] == 0
  for i = 1, #keys do
    -- Where a value has such bytes, too many are found: that costs only time.
    is_new = is_new and not string.find(packed, keys[i], 6, true)
  end
  if is_new then
    after = '\221' .. struct.pack('>I4', struct.unpack('>I4', packed, 2) + #keys) .. sub(packed, 6) .. marking.pieces
  else
    local gone = { unpack(marking[FORGOTTEN]) }
    for i = 1, #marking[MARKS], 2 do
      gone[#gone + 1] = marking[MARKS][i]
    end
    after = replace_marks(packed, gone, marking.pieces, #keys)
  end
  -- Jobs that are marked together mostly have the same marks before.
  marking.known[packed] = after
  return after
end

-- Moves marks that have become many into a hash of the job.
local function move_apart(q, id, packed)
  local pieces, names = split_marks(packed)
  local fields = {}
  for i = 1, #pieces do
    fields[2 * i - 1], fields[2 * i] = names[i], sub(pieces[i], select(2, read_text(pieces[i], 2)))
  end
  call_with('HSET', q.base .. ':marks:' .. id, fields)
  call('HSETNX', q.base .. ':past', id, 0)
end

-- Writes marks into the hash of a job.
local function mark_apart(q, id, marking, stamp)
  local key, marks, fields = q.base .. ':marks:' .. id, marking[MARKS], {}
  call_with('HDEL', key, marking[FORGOTTEN])
  for i = 1, #marks, 2 do
    fields[i], fields[i + 1] = marks[i], pack_text(marks[i + 1]) .. stamp
  end
  call_with('HSET', key, fields)
end

-- The run of a job that is going to have marks, or to wait for one.
local function marked_run(run)
  return sub(run, 1, MADE - 1) .. char(WITH_MARKS) .. sub(run, MADE + 1)
end

-- Deletes and writes marks of jobs, which are all different. Puts the runs that jobs get by that into `runs`, and returns
-- them as pairs of id and run.
local function mark(q, ids, runs, markings)
  local stamp, stored = pack_time(q.now), stored_marks(q, ids, runs)
  local written, changed, number, new = {}, {}, 0, 0
  for i = 1, #ids do
    local id, marking, before, after = ids[i], markings[i], stored[i], nil
    if not marking.keys then
      pack_marking(marking, stamp)
    end
    if before == '' then
      mark_apart(q, id, marking, stamp)
    elseif before then
      after = packed_after(before, marking)
    elseif not before and #marking.keys > 0 then
      after = '\221' .. struct.pack('>I4', #marking.keys) .. marking.pieces
    end
    if after then
      if #after > MOST_PACKED then
        move_apart(q, id, after)
        after = ''
      end
      number = number + 2
      written[number - 1], written[number] = id, after
      local run = runs[i]
      if byte(run, MADE) ~= WITH_MARKS then
        run, new = marked_run(run), new + 2
        runs[i], changed[new - 1], changed[new] = run, id, run
      end
    end
  end
  call_with('HSET', q.base .. ':marks', written)
  return changed
end
