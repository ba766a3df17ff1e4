-- Changes where jobs stand, or their data; each edit whole or not at all.
-- Takes the queue's base; [now, [[id, priority, lifo, delay, due_at, data]]] with null for what stays.
-- Returns an answer code for each edit: its verdict and the job's state.
-- Uses: announcing, leaving_states, changing
local now, edits = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, answers, announced = q.base, {}, {}
local IN_LINE = { ['{{WAITING}}'] = true, ['{{DELAYED}}'] = true, ['{{WAITING_CHILDREN}}'] = true }

local function may(state, edit)
  local _, priority, lifo, delay, due_at = edit[1], edit[2], edit[3], edit[4], edit[5]
  if not IN_LINE[state] and state ~= '{{ACTIVE}}' then
    return false
  end
  if (delay ~= nil or due_at ~= nil) and state ~= '{{DELAYED}}' then
    return false
  end
  return state ~= '{{ACTIVE}}' or (priority == nil and lifo == nil)
end

local function is_empty(edit)
  for part = 2, 6 do
    if edit[part] ~= nil then
      return false
    end
  end
  return true
end

local function change(job, edit)
  local id, value, changes = job.id, job.value, {}
  local _, priority, lifo, delay, due_at, data = edit[1], edit[2], edit[3], edit[4], edit[5], edit[6]
  if delay ~= nil then
    due_at = math.min(q.now + delay, {{LAST_INSTANT}})
  end
  if priority ~= nil or lifo ~= nil or due_at ~= nil then
    leave_state(q, job)
    local same_priority, order = read_tail(value)
    if priority == nil then
      priority = same_priority
    else
      changes[#changes + 1] = '"priority":' .. priority
    end
    if lifo ~= nil then
      order = lifo and -math.abs(order) or math.abs(order)
      changes[#changes + 1] = '"lifo":' .. tostring(lifo)
    end
    job.place = make_place(priority, order)
    value = with_place(value, job.place)
    if job.state == '{{DELAYED}}' then
      call('ZADD', base .. ':delayed', due_at or job.due, sub(job.place, 4) .. id)
    elseif job.state == '{{WAITING_CHILDREN}}' then
      call('ZADD', base .. ':' .. job.state, 0, sequence_of(job.place) .. id)
    else
      put_in_line(q, name_of(value), { job.place .. id })
    end
    if job.run then
      call('HSET', base .. ':runs', id, sub(job.run, 1, -11) .. job.place)
    end
  end
  if due_at ~= nil then
    changes[#changes + 1] = '"due_at":' .. whole(due_at)
  end
  if data ~= nil then
    value = with_data(value, data)
    changes[#changes + 1] = '"data":true'
  end
  call('HSET', base .. ':jobs', id, value)
  announced[#announced + 1] = '["' .. id .. '",{' .. table.concat(changes, ',') .. '}]'
end

for i = 1, #edits do
  local job = load_job(q, edits[i][1])
  if not job then
    answers[i] = '{{MISSING}}'
  elseif may(job.state, edits[i]) then
    answers[i] = '{{DONE}}' .. STATE_CODES[job.state]
    if not is_empty(edits[i]) then
      change(job, edits[i])
    end
  else
    answers[i] = '{{REFUSED}}' .. STATE_CODES[job.state]
  end
end
if #announced > 0 then
  announce_all(q, '{{CHANGED}}', nil, announced)
  wake(q, 'jobs')
end
close_queue(q)
return table.concat(answers)
