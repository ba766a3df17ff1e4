-- Follow-ups: jobs that the end of a job adds to other queues, noted as work for these queues (see job/follow_ups.py).
-- Uses: steps, child_keys, extras, lines, groups, announcing

local function note_follow_up(q, to, id, text, extras)
  -- See ids.py.
  id = #id == 22 and '=' .. id or id
  -- Without tags, parents and children.
  add_work(step_of(q), ITEM.FOLLOW_UP, to, id, text, '\148\144\144\0' .. cmsgpack.pack(extras))
end

local function is_reported(webhook, state)
  -- A delivery has none.
  for _, event in ipairs(webhook.events or {}) do
    if event == state then
      return true
    end
  end
  return false
end

-- Name and data of a job as they are stored, with other options.
local function with_options(value, options)
  local _, data_at = read_text(value, 1)
  local _, options_at = read_text(value, data_at)
  return sub(value, 1, options_at - 1) .. pack_text(options)
end

-- Notes the follow-ups of a job that has just ended; `rules` and `tags` are of its extras, `word` is its result or reason.
local function note_follow_ups(q, id, rules, tags, state, word)
  local dead_letter = state == '{{FAILED}}' and rules.dead_letter
  local webhook = rules.webhook and is_reported(rules.webhook, state) and rules.webhook
  if not dead_letter and not webhook then
    return
  end
  local value, run = call('HGET', q.base .. ':jobs', id), call('HGET', q.base .. ':runs', id)
  if not value then
    return
  end
  local own = in_full(id)
  local follow_up, is_completed = q.queue .. ':' .. own .. ':' .. whole(q.now), state == '{{COMPLETED}}'
  local origin = {
    queue = q.queue, id = own, reason = is_completed and '' or word, attempts = count_at(run, MADE), at = q.now,
    event = state, result = is_completed and word ~= '' and word or nil, priority = (read_tail(value)),
    -- Lua's empty list might be a map.
    tags = #tags > 0 and tags or nil,
  }
  if dead_letter then
    note_follow_up(q, dead_letter, follow_up, sub(value, 1, -17), { origin = origin })
  end
  if webhook then
    local extras = { origin = origin, webhook = { url = webhook.url } }
    note_follow_up(q, '{{DELIVERIES}}', follow_up .. ':' .. state, with_options(value, '{{DELIVERY_OPTIONS}}'), extras)
  end
end

-- Adds follow-ups to the queue that gets them.
local function add_follow_ups(q, items)
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
