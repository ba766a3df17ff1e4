-- Bundles of jobs, in one queue or several.
-- Uses: unpack, announcing, places, lines, parked, bundle_fields

-- Adds to queues that are open. `texts` are those of all jobs, one after the other; `rare` is the list for RARE.
local function add_all(queues, names, bundles, only_looks, texts, rare)
  local text_at, verdicts, new_queues = 1, {}, {}

  for i = 1, #queues do
    local q = queues[i]
    q.jobs, q.delayed, q.groups, q.announced_delayed, q.duplicated, q.known = {}, {}, {}, {}, {}, {}
    q.ids, q.seen, q.asked, q.number, q.waiting, q.extras, q.runs = {}, {}, 0, 0, 0, {}, {}
    q.last, q.parents = nil, nil
    q.created = pack_created(q.now)
    if q.is_new then
      new_queues[#new_queues + 1] = i
    end
  end

  local is_plain, total, has_rare, flagged = true, 0, #rare > 0, nil

  local function read_texts(job)
    local length, q, id = job[LENGTH], queues[job[QUEUE]], job[ID]
    job.text = sub(texts, text_at, text_at + length - 1)
    text_at = text_at + length
    total = total + 1
    if q.seen[id] then
      is_plain = false
    end
    local own = has_rare and rare[job[RARE]]
    if own and own[2] and not own.is_after and not in_flows().comes_after_parents(queues, own) then
      is_plain = false
    end
    q.seen[id] = true
    local asked = q.asked + 1
    q.ids[asked], q.asked = id, asked
  end

  -- Whether name and data are the same; options may differ.
  local function are_equal(one, other)
    local name, data_at = read_text(one, 1)
    local other_name, other_data_at = read_text(other, 1)
    return name == other_name and read_text(one, data_at) == read_text(other, other_data_at)
  end

  local store = function(job)
    local q = queues[job[QUEUE]]
    local row, id, name, seq = q.row, job[ID], names[job[NAME]], q.row[SEQ] + 1
    row[SEQ] = seq
    local priority, order, due_at = job[PRIORITY] or 0, job[LIFO] and -seq or seq, nil
    if job[DELAY] and job[DELAY] > 0 then
      due_at = math.min(q.now + job[DELAY], {{LAST_INSTANT}})
    elseif job[DUE_AT] and job[DUE_AT] > q.now then
      due_at = job[DUE_AT]
    end
    local jobs, place = q.jobs, make_place(priority, order)
    local value, number = job.text .. place .. q.created, q.number + 2
    jobs[number - 1], jobs[number] = id, value
    q.number = number
    if not is_plain then
      q.known[id] = value
    end
    if has_rare and job[RARE] then
      flagged = flagged or rarely().flagged_run('')
      local run, extra = flagged .. place, #q.extras + 2
      q.extras[extra - 1], q.runs[extra - 1] = id, id
      q.extras[extra], q.runs[extra] = rare[job[RARE]][1], run
      if job[LINKS] then
        in_flows().add_parent(q, job, place, name)
        return
      end
    end
    if due_at then
      q.delayed[#q.delayed + 1] = due_at
      q.delayed[#q.delayed + 1] = sub(place, 4) .. id
      local detail = '{"name":' .. name[2] .. ',"due_at":' .. whole(due_at) .. '}'
      q.announced_delayed[#q.announced_delayed + 1] = '["' .. id .. '",' .. detail .. ']'
      return
    end
    q.waiting = q.waiting + 1
    -- Jobs of one name that follow each other are announced together, and put into their line together.
    local group = q.last
    if not group or group.name ~= name then
      group = { name = name, ids = {}, members = {}, number = 0 }
      q.groups[#q.groups + 1], q.last = group, group
    end
    number = group.number + 1
    group.ids[number], group.members[number], group.number = id, place .. id, number
  end

  local function judge(bundle)
    local own, codes, has_conflict = {}, {}, false
    for i = 1, #bundle do
      local job = bundle[i]
      local key = job[QUEUE] .. ' ' .. job[ID]
      local there = queues[job[QUEUE]].known[job[ID]] or own[key]
      local from = job[RARE] and rare[job[RARE]][2]
      if from then
        codes[i] = in_flows().judge_child(queues, job, from, there, own)
        if codes[i] == '{{CREATED}}' then
          own[key] = job.text
        end
        has_conflict = has_conflict or codes[i] == '{{CONFLICT}}'
      elseif not there then
        own[key] = job.text
        codes[i] = '{{CREATED}}'
      elseif are_equal(there, job.text) then
        codes[i] = '{{FOUND}}'
      else
        codes[i], has_conflict = '{{CONFLICT}}', true
      end
    end
    for i = 1, #bundle do
      local job = bundle[i]
      local q = queues[job[QUEUE]]
      if has_conflict and codes[i] ~= '{{CONFLICT}}' and not q.known[job[ID]] then
        codes[i] = '{{SKIPPED}}'
      elseif codes[i] == '{{CREATED}}' then
        store(job)
      end
      if codes[i] == '{{FOUND}}' then
        q.duplicated[#q.duplicated + 1] = job[ID]
      end
      verdicts[#verdicts + 1] = codes[i]
    end
  end

  for i = 1, #bundles do
    for j = 1, #bundles[i] do
      read_texts(bundles[i][j])
    end
  end
  for i = 1, #queues do
    local q = queues[i]
    local values = fields_of(q.base .. ':jobs', q.ids)
    for j = 1, #values do
      if values[j] then
        is_plain = false
        q.known[q.ids[j]] = values[j]
      end
    end
  end
  if only_looks then
    is_plain = false
    store = function(job)
      queues[job[QUEUE]].known[job[ID]] = job.text
    end
  end
  -- Nearly always every id is new, and occurs once.
  for i = 1, #bundles do
    if is_plain then
      for j = 1, #bundles[i] do
        store(bundles[i][j])
      end
    else
      judge(bundles[i])
    end
  end
  if only_looks then
    return { table.concat(verdicts), {} }
  end
  for i = 1, #queues do
    local q = queues[i]
    call_with('HSET', q.base .. ':jobs', q.jobs)
    call_with('HSET', q.base .. ':extras', q.extras)
    call_with('HSET', q.base .. ':runs', q.runs)
    local announced = {}
    for j, group in ipairs(q.groups) do
      put_in_line(q, group.name[1], group.members)
      announced[j] = each(group.ids, '{"name":' .. group.name[2] .. '}')
    end
    call_with('ZADD', q.base .. ':delayed', q.delayed)
    count(q, nil, WAITING, q.waiting)
    count(q, nil, DELAYED, #q.announced_delayed)
    if q.waiting > 0 then
      announce(q, '{{ADD}}', '{{WAITING}}', q.waiting, table.concat(announced, ','))
      if q.row[PARKED_UNTIL] >= q.now then
        serve_parked(q)
      end
      if q.row[WAITING] > 0 then
        wake(q, 'jobs')
      end
    end
    if #q.announced_delayed > 0 then
      announce_all(q, '{{ADD}}', '{{DELAYED}}', q.announced_delayed)
      wake(q, 'jobs')
    end
    if q.parents then
      in_flows().write_parents(q)
    end
    if #q.duplicated > 0 then
      announce(q, '{{DUPLICATED}}', nil, #q.duplicated, each(q.duplicated, 'null'))
    end
  end
  return { is_plain and string.rep('{{CREATED}}', total) or table.concat(verdicts), new_queues }
end

-- Takes what `add` takes.
local function add_bundles(now, names, bundles, number_of_queues, only_looks, rare, texts)
  local queues = {}
  for i = 1, number_of_queues do
    queues[i] = open_queue(KEYS[i], now)
  end
  local answer = add_all(queues, names, bundles, only_looks, texts, rare)
  for i = 1, only_looks and 0 or number_of_queues do
    close_queue(queues[i])
  end
  return answer
end
