-- What the end of a job does to those that wait for it: the table of job/flows.py.
-- Uses: steps, families, announcing, leaving_states, changing, options, removal, groups
local EFFECTS, OWED, ENDS = {{EFFECTS}}, {{OWED}}, {{ENDS}}

local function key_of(queue, id)
  return queue .. '/' .. id
end

local function read_key(key)
  return string.match(key, '^([^/]*)/(.*)$')
end

-- An id as users know it: see ids.py.
local function in_full(id)
  if #id ~= 22 or byte(id) == 61 then
    return byte(id) == 61 and sub(id, 2) or id
  end
  local alphabet, hex, bits, number = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', {}, 0, 0
  for i = 1, 22 do
    number, bits = number * 64 + string.find(alphabet, sub(id, i, i), 1, true) - 1, bits + 6
    while bits >= 4 and #hex < 32 do
      bits = bits - 4
      hex[#hex + 1] = format('%x', math.floor(number / 2 ^ bits))
      number = number % 2 ^ bits
    end
  end
  return (string.gsub(table.concat(hex), '^(........)(....)(....)(....)', '%1-%2-%3-%4-'))
end

-- As `reason_for_parents` of job/flows.py.
local function reason_for_parents(queue, id, move, reason)
  if move == '{{FAIL_BY_CHILD}}' then
    return reason
  end
  local head = '{{REASON_CHILD}}' .. key_of(queue, in_full(id))
  if move == '{{CANCEL}}' then
    return head .. '{{REASON_CANCELLED}}' .. (reason and reason ~= '' and '{{REASON_WHY}}' .. reason or '')
  end
  return head .. '{{REASON_FAILED}}' .. reason
end

-- The parents of a job: [queue, id] of each.
local function parents_of(q, id)
  local stored = call('HGET', q.base .. ':extras', id)
  return stored and cmsgpack.unpack(stored)[PARENTS] or {}
end

local function is_among(parents, queue, id)
  for i = 1, #parents do
    if parents[i][1] == queue and parents[i][2] == id then
      return true
    end
  end
  return false
end

-- Begins to tell the parents that some extras name; false if they name none.
local function begin_news(q, ended, extras)
  local news, parents = { ids = {}, words = {} }, cmsgpack.unpack(extras)[PARENTS] or {}
  for i = 1, #parents do
    add_work(step_of(q), ITEM.END, parents[i][1], parents[i][2], q.queue, ended, news.ids, news.words)
  end
  return #parents > 0 and news
end

-- Notes what parents are to be told about jobs that ended by a move; `words` are results or reasons, by id.
local function note_news(q, move, ids, words, stored)
  step_of(q)
  -- Most who end together have the same parents, and so the same extras.
  local ended, by_extras = ENDS[move], {}
  local has_reason = ended ~= '{{CHILD_COMPLETED}}' and ended ~= '{{CHILD_REMOVED}}'
  stored = stored or fields_of(q.base .. ':extras', ids)
  for i = 1, #ids do
    local id, extras = ids[i], stored[i]
    local news = extras and by_extras[extras]
    if extras and news == nil then
      news = begin_news(q, ended, extras)
      by_extras[extras] = news
    end
    if news then
      local number, word = #news.ids + 1, words[id] or ''
      news.ids[number] = id
      news.words[number] = has_reason and reason_for_parents(q.queue, id, move, word) or word
    end
  end
end

-- What jobs that are removed leave behind; `stored` are their extras.
local function leave_kin(q, state, ids, stored)
  for i = 1, #ids do
    if stored[i] and cmsgpack.unpack(stored[i])[CHILDREN] then
      drop_family(q, ids[i])
    end
  end
  if not IS_FINAL[state] then
    note_news(q, '{{REMOVE}}', ids, {}, stored)
  end
end

-- Whether a job that is postponed has children to wait for.
local function begins_to_wait(q, id, run)
  local family = has_extras(run) and load_family(q, id, {})
  if not family or (family.row[FAMILY.LEFT] == 0 and not family.row[FAMILY.OWED_EFFECT]) then
    return false
  end
  local step = step_of(q)
  add_work(step, ITEM.JUDGE, q.queue, id)
  family.row[FAMILY.IS_RELEASED] = false
  save_family(family)
  return true
end

-- Lets a parent go on: it waits in line, or for its own delay.
local function release(q, family, job)
  local row, id = family.row, job.id
  local due_at = row[FAMILY.DELAY] > 0 and math.min(q.now + row[FAMILY.DELAY], LAST_INSTANT) or row[FAMILY.DUE_AT]
  due_at = due_at and due_at > q.now and due_at
  row[FAMILY.IS_RELEASED], row[FAMILY.DELAY], row[FAMILY.DUE_AT] = true, 0, false
  leave_state(q, job)
  job.run, job.state = 'o' .. sub(job.run, 2), due_at and '{{DELAYED}}' or '{{WAITING}}'
  call('HSET', q.base .. ':runs', id, job.run)
  if due_at then
    call('ZADD', q.base .. ':delayed', due_at, sub(job.place, 4) .. id)
  else
    put_in_line(q, name_of(job.value), { job.place .. id })
  end
  count(q, WAITING_CHILDREN, COUNTERS[job.state], 1)
  announce(q, '{{RELEASE}}', job.state, 1, each({ id }, due_at and '{"due_at":' .. whole(due_at) .. '}' or 'null'))
  wake(q, 'jobs')
end

local function fail_by_child(q, job, reason)
  local step, failed = step_of(q), begin_ending(q, '{{FAIL_BY_CHILD}}', '{{FAILED}}')
  leave_state(q, job)
  call('HSET', q.base .. ':reasons', job.id, reason)
  count(q, WAITING_CHILDREN, nil, 1)
  local keep = read_stored_options(q, job.value, {{DEFAULTS}}).keep
  end_job(failed, job.id, sub(without_token(job.run), STARTED_AT), keep, '{"reason":' .. cjson.encode(reason) .. '}', reason)
  write_ending(q, failed)
  job.state = '{{FAILED}}'
  step.endings[#step.endings + 1] = { q, failed }
end

-- The child of a link, and its parents. Another job may have its id since it was removed.
local function load_child(q, id, queue, parent)
  local job = load_job(q, id)
  local parents = job and parents_of(q, id)
  if job and is_among(parents, queue, parent) then
    return job, parents
  end
  return nil
end

-- Takes a parent from a child that has not ended. Returns the child if it has no other.
local function orphan(q, id, queue, parent)
  local job, parents = load_child(q, id, queue, parent)
  if not job or IS_FINAL[job.state] then
    return nil
  end
  local left = {}
  for _, one in ipairs(parents) do
    if one[1] ~= queue or one[2] ~= parent then
      left[#left + 1] = one
    end
  end
  change_extras(q, id, PARENTS, left)
  return #left == 0 and job or nil
end

-- Removes a job with its unfinished descendants, except those for which another parent waits.
local function remove_tree(q, top)
  local step, going, by_queue, at = step_of(q), { { q, top } }, {}, 1
  while going[at] do
    local own, job = unpack(going[at])
    add_to(by_queue, own.queue, job)
    for _, key in ipairs(call('HKEYS', own.base .. ':children:' .. job.id)) do
      local name, id = read_key(key)
      local there = name and reach(step, name)
      if there then
        local child = orphan(there, id, own.queue, job.id)
        going[#going + 1] = child and { there, child }
      elseif name then
        add_work(step, ITEM.ORPHAN, name, id, own.queue, job.id)
      end
    end
    at = at + 1
  end
  for name, jobs in pairs(by_queue) do
    remove(step.opened[name], jobs)
  end
end

-- Decides what becomes of a parent that waits for its children.
local function judge(family)
  local row, q = family.row, family.q
  local owed, reason = row[FAMILY.OWED_EFFECT], row[FAMILY.OWED_REASON]
  if family.is_gone or (not owed and row[FAMILY.LEFT] > 0) then
    return
  end
  family.job = family.job or load_job(q, family.id)
  local job = family.job
  if not job or job.state ~= '{{WAITING_CHILDREN}}' then
    return
  end
  row[FAMILY.OWED_EFFECT], row[FAMILY.OWED_REASON] = false, ''
  if owed == '{{EFFECT_FAIL}}' then
    fail_by_child(q, job, reason)
  elseif owed == '{{EFFECT_REMOVE}}' then
    family.is_gone = true
    remove_tree(q, job)
  else
    release(q, family, job)
  end
end

-- Records the end of a child. What ended well never changes again.
local function note_end(family, key, ended, word)
  local row, link = family.row, family.links[key]
  local state, policy = link and sub(link, 1, 1), link and sub(link, 2, 2)
  if not link or state == '{{CHILD_COMPLETED}}' then
    return
  end
  local effect, is_pending = EFFECTS[ended .. policy], state == '{{CHILD_PENDING}}'
  local is_awaited = is_pending or policy == '{{POLICY_WAIT}}'
  if effect == '{{EFFECT_FORGET}}' then
    if not is_awaited then
      return
    end
    forget_link(family, key)
  elseif effect == '{{EFFECT_DONE}}' or is_pending then
    set_link(family, key, ended, policy, word)
  else
    return
  end
  if effect ~= '{{EFFECT_HOLD}}' and is_awaited then
    row[FAMILY.LEFT] = row[FAMILY.LEFT] - 1
  end
  if OWED[effect] and OWED[effect] > (OWED[row[FAMILY.OWED_EFFECT]] or 0) then
    row[FAMILY.OWED_EFFECT], row[FAMILY.OWED_REASON] = effect, word
  end
end

-- A child that was to be retried with its parent is gone: it stays as it was.
local function note_gone(family, key, state, word)
  local link = family.links[key]
  if link and sub(link, 1, 1) == '{{CHILD_PENDING}}' then
    set_link(family, key, state, sub(link, 2, 2), word)
    family.row[FAMILY.LEFT] = family.row[FAMILY.LEFT] - 1
  end
end

-- Items for one parent: how its children ended.
local function tell(q, id, items)
  local keys = {}
  for i = 1, #items do
    local kind, _, _, queue, child, ids = unpack(items[i])
    if kind == ITEM.END then
      for j = 1, #ids do
        keys[#keys + 1] = key_of(queue, ids[j])
      end
    elseif kind == ITEM.GONE then
      keys[#keys + 1] = key_of(queue, child)
    end
  end
  local family, number = load_family(q, id, keys), 0
  if not family then
    return
  end
  for i = 1, #items do
    local kind, words = items[i][1], items[i][7]
    if kind == ITEM.END then
      for j = 1, #words do
        number = number + 1
        note_end(family, keys[number], items[i][5], words[j])
        judge(family)
      end
    else
      if kind == ITEM.GONE then
        number = number + 1
        note_gone(family, keys[number], items[i][6], words)
      end
      judge(family)
    end
  end
  if not family.is_gone then
    save_family(family)
  end
end

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

local function drop_orphan(q, id, parent_queue, parent)
  local job = orphan(q, id, parent_queue, parent)
  if job then
    remove_tree(q, job)
  end
end

-- Does one round of work; more may come of it.
local function work_round(step, items)
  local groups, elsewhere = {}, {}
  for i = 1, #items do
    local item = items[i]
    local kind, name, id = item[1], item[2], item[3]
    local q = reach(step, name)
    if not q then
      add_to(elsewhere, name, item)
    elseif kind == ITEM.AGAIN then
      retry_child(q, id, unpack(item, 4))
    elseif kind == ITEM.ORPHAN then
      drop_orphan(q, id, item[4], item[5])
    else
      -- Those of one parent together: its family is read and written once.
      local key = key_of(name, id)
      if not groups[key] then
        groups[#groups + 1] = key
      end
      add_to(groups, key, item)
    end
  end
  for i = 1, #groups do
    local first = groups[groups[i]][1]
    tell(step.opened[first[2]], first[3], groups[groups[i]])
  end
  for name, posted in pairs(elsewhere) do
    post(step, name, posted)
  end
end

-- Does what follows for parents and children from the jobs that ended, and closes the queues that it opened. Returns names
-- and texts of what went into the outbox.
local function conclude(q)
  local step = step_of(q)
  while #step.work > 0 do
    local items = step.work
    step.work = {}
    work_round(step, items)
  end
  for key, ids in pairs(step.retried) do
    local name, to = string.match(key, '^(%S*) (.*)$')
    announce(step.opened[name], '{{RETRY_BY_HAND}}', to, #ids, each(ids, 'null'))
    wake(step.opened[name], 'jobs')
  end
  for _, ending in ipairs(step.endings) do
    apply_retention(unpack(ending))
  end
  for _, other in ipairs(step.others) do
    notice_drained(other)
    close_queue(other)
  end
  q.step = nil
  return step.posted
end
