-- Bundles of jobs, in one queue or several.
-- Uses: unpack, announcing, places, lines, parked, bundle_fields, new_runs, added, admission

-- Adds to queues that are open. `texts` are those of all jobs, one after the other; `rare_of` is what `spread` returns, or
-- nil if no job has anything rare; `keys` has a dedupe key for each job, all different, if jobs of one queue have nothing else
-- that is rare, and these can be stored in place of runs (see lib/new_runs.lua). Returns codes, numbers of new queues, and for each job that was deduplicated the id of the
-- job that holds its key.
local function add_all(queues, names, bundles, only_looks, texts, rare_of, keys)
  local text_at, text_of, verdicts, new_queues = 1, {}, {}, {}

  for i = 1, #queues do
    local q = queues[i]
    begin_adding(q)
    q.duplicated, q.known, q.ids, q.seen, q.asked = {}, {}, {}, {}, 0
    q.has_waiting, q.keys, q.deduplicated = false, nil, nil
    q.created = pack_created(q.now)
    if q.is_new then
      new_queues[#new_queues + 1] = i
    end
  end

  local is_plain, has_keys, total, flagged, keyed = true, false, 0, nil, nil

  local function read_texts(job)
    local length, q, id = job[LENGTH], queues[job[QUEUE]], job[ID]
    total = total + 1
    text_of[total] = sub(texts, text_at, text_at + length - 1)
    text_at = text_at + length
    if q.seen[id] then
      is_plain = false
    end
    local own = rare_of and rare_of[total]
    if own and own[FROM] and not own.is_after and not new_flows().comes_after_parents(queues, own) then
      is_plain = false
    end
    if own and own[KEY] then
      has_keys, is_plain = true, note_key(q, own[KEY]) and is_plain
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

  -- Takes a job and its number in the call.
  local store = function(job, at)
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
    local value, number = text_of[at] .. place .. q.created, q.number + 2
    jobs[number - 1], jobs[number] = id, value
    q.number = number
    if not is_plain then
      q.known[id] = value
    end
    local own, key = rare_of and rare_of[at], keys and keys[at]
    if key then
      local extra = q.extra + 2
      q.runs[extra - 1], q.runs[extra], q.extra = id, key, extra
      q.taken[extra - 1], q.taken[extra] = key, id
    elseif own then
      flagged = flagged or flagged_run('')
      local extra = q.extra + 2
      q.extras[extra - 1], q.extras[extra], q.extra = id, own[EXTRAS], extra
      q.runs[extra - 1], q.runs[extra] = id, flagged .. place
      if own[KEY] and is_plain then
        hold_key(q, id, own)
      end
      if own[START_WITHIN] or own[START_BY] then
        local deadline = own[START_WITHIN] and math.min(q.now + own[START_WITHIN], {{LAST_INSTANT}}) or own[START_BY]
        q.deadlines = q.deadlines or {}
        q.deadlines[#q.deadlines + 1] = whole(deadline)
        q.deadlines[#q.deadlines + 1] = id
        row[DEADLINE] = math.max(row[DEADLINE] == 0 and deadline or math.min(row[DEADLINE], deadline), 1)
      end
      if job[LINKS] then
        new_flows().add_parent(q, job, place, name)
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

  -- Takes a bundle and how many jobs of the call come before it.
  local function judge(bundle, before)
    local own, codes, has_conflict = {}, {}, false
    for i = 1, #bundle do
      local job = bundle[i]
      local key = job[QUEUE] .. ' ' .. job[ID]
      local there = queues[job[QUEUE]].known[job[ID]] or own[key]
      local text, own_rare = text_of[before + i], rare_of and rare_of[before + i]
      local from = own_rare and own_rare[FROM]
      if from then
        codes[i] = new_flows().judge_child(queues, job, from, there, own)
        if codes[i] == '{{CREATED}}' then
          own[key] = text
        end
        has_conflict = has_conflict or codes[i] == '{{CONFLICT}}'
      elseif not there then
        own[key] = text
        codes[i] = '{{CREATED}}'
      elseif are_equal(there, text) then
        codes[i] = '{{FOUND}}'
      else
        codes[i], has_conflict = '{{CONFLICT}}', true
      end
    end
    local dropped = {}
    for i = 1, #bundle do
      local job = bundle[i]
      local q = queues[job[QUEUE]]
      if has_conflict and codes[i] ~= '{{CONFLICT}}' and not q.known[job[ID]] then
        codes[i] = '{{SKIPPED}}'
      elseif codes[i] == '{{CREATED}}' then
        if not keyed then
          store(job, before + i)
        else
          codes[i] = admit(keyed, job, before + i, dropped)
        end
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
    store = function(job, at)
      queues[job[QUEUE]].known[job[ID]] = text_of[at]
    end
  end
  if keys and (not is_plain or has_any(queues[1].base .. ':held', keys)) then
    -- Each job is judged by itself.
    return add_all(queues, names, bundles, only_looks, texts, spread(keyed_apart(keys)))
  elseif keys then
    queues[1].taken = {}
  end
  if has_keys then
    local are_free
    keyed, are_free = begin_keys(queues, rare_of, text_of, store, only_looks)
    is_plain = is_plain and are_free
  end
  -- Nearly always every id is new, and occurs once.
  local stored = 0
  for i = 1, #bundles do
    local bundle = bundles[i]
    if is_plain then
      for j = 1, #bundle do
        store(bundle[j], stored + j)
      end
    else
      judge(bundle, stored)
    end
    stored = stored + #bundle
  end
  if only_looks then
    return { table.concat(verdicts), {}, keyed and keyed.holders }
  end
  for i = 1, #queues do
    local q = queues[i]
    write_added(q)
    if q.has_waiting then
      if q.row[PARKED_UNTIL] >= q.now then
        serve_parked(q)
      end
      if q.row[WAITING] > 0 then
        wake(q, 'jobs')
      end
    end
    if q.deduplicated and q.deduplicated.is_first then
      announce_all(q, '{{DEDUPLICATED}}', nil, q.deduplicated)
    end
    if #q.duplicated > 0 then
      announce(q, '{{DUPLICATED}}', nil, #q.duplicated, each(q.duplicated, 'null'))
    end
    if q.deduplicated and not q.deduplicated.is_first then
      announce_all(q, '{{DEDUPLICATED}}', nil, q.deduplicated)
    end
  end
  return { is_plain and string.rep('{{CREATED}}', total) or table.concat(verdicts), new_queues, keyed and keyed.holders }
end

-- Takes what `add` takes.
local function add_bundles(now, names, bundles, number_of_queues, only_looks, rare, texts, keys)
  local queues = {}
  for i = 1, number_of_queues do
    queues[i] = open_queue(KEYS[i], now)
  end
  local answer = add_all(queues, names, bundles, only_looks, texts, #rare > 0 and spread(rare) or nil, keys)
  if queues[1].step and queues[1].step.is_shared then
    answer[4] = in_flows().conclude(queues[1])
    notice_drained(queues[1])
  end
  for i = 1, only_looks and 0 or number_of_queues do
    close_queue(queues[i])
  end
  answer[3], answer[4] = answer[3] or {}, answer[4] or {}
  return answer
end
