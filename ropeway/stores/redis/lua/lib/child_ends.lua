-- What the end of a child does to a parent: the table of job/flows.py.
-- Uses: parents, trees, releases, options
local EFFECTS, OWED = {{EFFECTS}}, {{OWED}}

local function fail_by_child(q, job, reason)
  local step, failed = step_of(q), begin_ending(q, '{{FAIL_BY_CHILD}}', '{{FAILED}}')
  write_releases(step)
  leave_state(q, job)
  call('HSET', q.base .. ':reasons', job.id, reason)
  count(q, WAITING_CHILDREN, nil, 1)
  local keep = read_stored_options(q, job.value, {{DEFAULTS}}).keep
  end_job(failed, job.id, sub(without_token(job.run), STARTED_AT), keep, '{"reason":' .. cjson.encode(reason) .. '}', reason)
  write_ending(q, failed)
  job.state = '{{FAILED}}'
  step.endings[#step.endings + 1] = { q, failed }
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

-- Records the end of one child. What ended well never changes again.
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

-- Records that children completed, if all of them are pending, as nearly always; else it does nothing and returns false.
local function note_completions(family, keys, links, words)
  local row, changed, completed_links = family.row, {}, {}
  for i = 1, #words do
    local link = links[i]
    if not link or sub(link, 1, 1) ~= '{{CHILD_PENDING}}' then
      return false
    end
    local completed = completed_links[link]
    if not completed then
      completed = '{{CHILD_COMPLETED}}' .. sub(link, 2, 2)
      completed_links[link] = completed
    end
    changed[2 * i - 1], changed[2 * i] = keys[i], completed .. words[i]
  end
  local number, at = #words, ENDED['{{CHILD_COMPLETED}}']
  family.changed, row[FAMILY.LEFT], row[at] = changed, row[FAMILY.LEFT] - number, row[at] + number
  return true
end

-- Records one by one how children ended; `keys` are those of all items.
local function note_items(family, keys, items)
  local number = 0
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
end

-- Does the items of work for one parent.
local function tell(q, id, items)
  local keys, number = {}, 0
  for i = 1, #items do
    local kind, _, _, queue, child, ids = unpack(items[i])
    if kind == ITEM.END then
      for j = 1, #ids do
        number = number + 1
        keys[number] = key_of(queue, ids[j])
      end
    elseif kind == ITEM.GONE then
      number = number + 1
      keys[number] = key_of(queue, child)
    end
  end
  local family, links = load_family(q, id, keys)
  if not family then
    return
  end
  local kind, ended, words = items[1][1], items[1][5], items[1][7]
  local are_completions = #items == 1 and kind == ITEM.END and ended == '{{CHILD_COMPLETED}}'
  if are_completions and note_completions(family, keys, links, words) then
    judge(family)
  else
    for i = 1, number do
      family.links[keys[i]] = links[i]
    end
    note_items(family, keys, items)
  end
  if not family.is_gone then
    save_family(family)
  end
end
