-- Retention of a whole queue: finished jobs become stale, and are deleted later (see job/stages.py).
--
-- `stages` has the fields stale_after, delete_after and stale_until, and one for each stage that has callbacks.
-- Uses: follow_ups, endings, announcing
local FINAL = {{FINAL}}

local function read_stages(q)
  local fields = call('HMGET', q.base .. ':stages', 'stale_after', 'delete_after', 'stale_until', '{{STALE}}', '{{DELETED}}')
  return {
    stale_after = tonumber(fields[1] or nil), delete_after = tonumber(fields[2] or nil),
    stale_until = tonumber(fields[3] or 0), has = { ['{{STALE}}'] = fields[4], ['{{DELETED}}'] = fields[5] },
  }
end

-- Notes the calls of callbacks for finished jobs, as `callback_job` of job/stages.py.
local function note_callbacks(q, stages, stage, state, members)
  if not stages.has[stage] then
    return
  end
  local ids = {}
  for i = 1, #members do
    ids[i] = sub(members[i], 8)
  end
  local values, runs = fields_of(q.base .. ':jobs', ids), fields_of(q.base .. ':runs', ids)
  local results, reasons = fields_of(q.base .. ':results', ids), fields_of(q.base .. ':reasons', ids)
  step_of(q)
  for i = 1, #ids do
    if values[i] and runs[i] then
      local own, at = in_full(ids[i]), time_at(runs[i], FINISHED_AT)
      local origin = {
        queue = q.queue, id = own, reason = reasons[i] or '', attempts = count_at(runs[i], MADE), at = at,
        event = state, result = results[i] or nil, stage = stage,
      }
      local id = stage .. ':' .. whole(at) .. ':' .. sub(own, -{{ID_KEPT}})
      local callbacks = '{{SYSTEM_PREFIX}}' .. stage .. '.' .. q.queue
      note_follow_up(q, callbacks, id, with_options(values[i], '{{CALLBACK_OPTIONS}}'), { origin = origin })
    end
  end
end

-- How many jobs one tick moves to a stage.
local function stage_batch(stages, stage)
  return stages.has[stage] and {{CALLBACK_BATCH}} or BATCH
end

local function add_ids(ids, members)
  for i = 1, #members do
    ids[#ids + 1] = sub(members[i], 8)
  end
end

-- Until when jobs become stale now: a batch, and those that ended in the same millisecond as its last one. Nil if none do.
local function next_stale_until(q, stages)
  local ended, batch = {}, stage_batch(stages, '{{STALE}}')
  for _, state in ipairs(FINAL) do
    local found = call('ZRANGEBYSCORE', q.base .. ':' .. state, '(' .. whole(stages.stale_until),
      whole(q.now - stages.stale_after), 'WITHSCORES', 'LIMIT', 0, batch)
    for i = 2, #found, 2 do
      ended[#ended + 1] = tonumber(found[i])
    end
  end
  table.sort(ended)
  return ended[math.min(#ended, batch)]
end

local function mark(q, stages)
  local ids, until_now = {}, stages.stale_after and next_stale_until(q, stages)
  if not until_now then
    return 0
  end
  for _, state in ipairs(FINAL) do
    local members =
      call('ZRANGEBYSCORE', q.base .. ':' .. state, '(' .. whole(stages.stale_until), whole(until_now))
    add_ids(ids, members)
    note_callbacks(q, stages, '{{STALE}}', state, members)
  end
  stages.stale_until = until_now
  call('HSET', q.base .. ':stages', 'stale_until', whole(until_now))
  announce(q, '{{STALE}}', nil, #ids, each(ids, 'null'))
  return #ids
end

local function delete(q, stages)
  if not stages.delete_after then
    return 0
  end
  local limit, ids, by_state = q.now - stages.delete_after, {}, {}
  local batch = stage_batch(stages, '{{DELETED}}')
  -- None goes before it is stale.
  limit = stages.stale_after and math.min(limit, stages.stale_until) or limit
  for _, state in ipairs(FINAL) do
    by_state[state] =
      call('ZRANGEBYSCORE', q.base .. ':' .. state, '-inf', whole(limit), 'LIMIT', 0, batch - #ids)
    add_ids(ids, by_state[state])
    note_callbacks(q, stages, '{{DELETED}}', state, by_state[state])
  end
  if #ids == 0 then
    return 0
  end
  announce(q, '{{DELETED}}', nil, #ids, each(ids, 'null'))
  for _, state in ipairs(FINAL) do
    if #by_state[state] > 0 then
      drop_finished(q, state, by_state[state], true)
      call_with('ZREM', q.base .. ':kept:' .. state, by_state[state])
    end
  end
  return #ids
end

-- Returns how many jobs became stale, how many were deleted, and whether there may be more.
local function apply_stages(q)
  local stages = read_stages(q)
  local stale, deleted = mark(q, stages), delete(q, stages)
  return stale, deleted, stale >= stage_batch(stages, '{{STALE}}') or deleted == stage_batch(stages, '{{DELETED}}')
end

-- When the next job becomes stale, or is deleted; nil if none does.
local function next_stage_at(q)
  local stages, earliest = read_stages(q), nil
  local function note(age, from)
    for _, state in ipairs(FINAL) do
      local found = age and call('ZRANGEBYSCORE', q.base .. ':' .. state, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if found and found[2] then
        earliest = math.min(tonumber(found[2]) + age, earliest or math.huge)
      end
    end
  end
  note(stages.stale_after, '(' .. whole(stages.stale_until))
  note(stages.delete_after, '-inf')
  return earliest
end
