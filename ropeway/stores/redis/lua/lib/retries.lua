-- Lets finished jobs wait again, parents with the children by which they failed.
-- Uses: parents, leaving_states, changing, lines, groups

-- The children by which a parent failed are retried, as far as they are there; from now on it waits for them again.
local function retry_children(family, reset)
  local q, row = family.q, family.row
  local step, found = step_of(q), call('HGETALL', q.base .. ':children:' .. family.id)
  for i = 1, #found, 2 do
    local key, link = found[i], found[i + 1]
    local state, policy, word = sub(link, 1, 1), sub(link, 2, 2), sub(link, 3)
    local is_failed = state == '{{CHILD_FAILED}}' or state == '{{CHILD_CANCELLED}}'
    local name, id = read_key(key)
    if name and policy == '{{POLICY_FAIL}}' and is_failed then
      local there = reach(step, name)
      local child = there and load_child(there, id, q.queue, family.id)
      if not there or (child and child.state ~= '{{COMPLETED}}') then
        family.links[key] = link
        set_link(family, key, '{{CHILD_PENDING}}', policy, '')
        row[FAMILY.LEFT] = row[FAMILY.LEFT] + 1
        add_work(step, ITEM.AGAIN, name, id, q.queue, family.id, state, word, reset)
      end
    end
  end
end

-- Lets a finished job wait once more, and with it the children by which it failed.
local function retry(q, job, reset)
  local step, id, none, to = step_of(q), job.id, reset and NONE or nil, '{{WAITING}}'
  local family = has_extras(job.run) and load_family(q, id, {})
  if family then
    local row = family.row
    if not row[FAMILY.IS_RELEASED] then
      row[FAMILY.OWED_EFFECT] = false
      retry_children(family, reset)
    end
    to = row[FAMILY.LEFT] > 0 and not row[FAMILY.IS_RELEASED] and '{{WAITING_CHILDREN}}' or to
    save_family(family)
  end
  leave_state(q, job)
  local run = without_token(waiting_run(job.run, none, none))
  if reset then
    run = sub(run, 1, STARTS - 1) .. NONE .. sub(run, STALLED)
  end
  if to == '{{WAITING_CHILDREN}}' then
    run = STATE_CODES[to] .. sub(run, 2)
    call('ZADD', q.base .. ':' .. to, 0, sequence_of(job.place) .. id)
  else
    put_in_line(q, name_of(job.value), { job.place .. id })
  end
  call('HSET', q.base .. ':runs', id, run)
  for _, what in ipairs({ ':results', ':reasons', ':progress' }) do
    call('HDEL', q.base .. what, id)
  end
  if byte(run, MADE) == WITH_MARKS then
    -- The mark for which it was delayed, perhaps.
    call('HDEL', q.base .. ':awaited', id)
  end
  count(q, COUNTERS[job.state], COUNTERS[to], 1)
  add_to(step.retried, q.queue .. ' ' .. to, id)
end

local function retry_child(q, id, parent_queue, parent, state, word, reset)
  local child = load_child(q, id, parent_queue, parent)
  if not child or child.state == '{{COMPLETED}}' then
    add_work(q.step, ITEM.GONE, parent_queue, parent, q.queue, id, state, word)
  elseif IS_FINAL[child.state] then
    -- Not yet by another of its parents.
    retry(q, child, reset)
  end
end
