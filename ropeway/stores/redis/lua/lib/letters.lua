-- Dead letters: copies of jobs that failed, as work for the queues that get them.
-- Uses: steps, child_keys, extras, lines, groups, announcing

-- Notes the dead letter of a job that has just failed: see job/dead_letters.py.
local function note_letter(q, id, dead_letter, reason)
  local value, run = call('HGET', q.base .. ':jobs', id), call('HGET', q.base .. ':runs', id)
  if not value then
    return
  end
  local own = in_full(id)
  local letter = q.queue .. ':' .. own .. ':' .. whole(q.now)
  -- See ids.py.
  letter = #letter == 22 and '=' .. letter or letter
  local origin = { queue = q.queue, id = own, reason = reason, attempts = count_at(run, MADE), at = q.now }
  -- Without tags, parents and children.
  local extras = '\148\144\144\0' .. cmsgpack.pack({ origin = origin })
  add_work(step_of(q), ITEM.LETTER, dead_letter, letter, sub(value, 1, -17), extras)
end

-- Adds letters to the queue that gets them.
local function add_letters(q, items)
  local step, ids = step_of(q), {}
  for i = 1, #items do
    ids[i] = items[i][3]
  end
  local there, values, runs, extras, lines, announced = fields_of(q.base .. ':jobs', ids), {}, {}, {}, {}, {}
  for i = 1, #ids do
    if not there[i] then
      local id, text, name = ids[i], items[i][4], name_of(items[i][4])
      q.row[SEQ] = q.row[SEQ] + 1
      local place, at = make_place(0, q.row[SEQ]), #values
      values[at + 1], values[at + 2] = id, text .. place .. pack_created(q.now)
      runs[at + 1], runs[at + 2] = id, flagged_run(place)
      extras[at + 1], extras[at + 2] = id, items[i][5]
      add_to(lines, name, place .. id)
      announced[#announced + 1] = '["' .. id .. '",{"name":' .. cjson.encode(name) .. '}]'
    end
  end
  if #announced == 0 then
    return
  end
  call_with('HSET', q.base .. ':jobs', values)
  call_with('HSET', q.base .. ':runs', runs)
  call_with('HSET', q.base .. ':extras', extras)
  put_all_in_line(q, lines)
  count(q, nil, WAITING, #announced)
  announce_all(q, '{{ADD}}', '{{WAITING}}', announced)
  wake(q, 'jobs')
  if not step.is_split then
    -- In a cluster whoever delivers them does so: see `Keys.queues`.
    call('SADD', sub(step.head, 1, -2) .. '}:queues', q.queue)
  end
end
