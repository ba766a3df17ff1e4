-- Jobs with dedupe keys in bundles, and those that are not added because of them.
-- Uses: bundle_fields, holds, added, new_runs

-- What jobs have rarely that have nothing but a key.
local function keyed_apart(keys)
  local rare = {}
  for number = 1, #keys do
    rare[number] = { extras_of_key(keys[number]), false, number, keys[number] }
  end
  return rare
end

-- Whether a hash has one of some fields.
local function has_any(hash, fields)
  local values = fields_of(hash, fields)
  for i = 1, #fields do
    if values[i] then
      return true
    end
  end
  return false
end

-- Notes the key of a job; false if another job of the call has the same.
local function note_key(q, key)
  if not q.keys then
    q.keys, q.holds, q.number_of_keys = {}, {}, 0
  end
  local number, is_new = q.number_of_keys + 1, not q.holds[key]
  q.keys[number], q.number_of_keys, q.holds[key] = key, number, true
  return is_new
end

-- Call it when all jobs are read, and nothing is stored yet. Also returns whether all keys are free.
local function begin_keys(queues, rare_of, text_of, store, only_looks)
  local are_free = true
  for i = 1, #queues do
    local q = queues[i]
    local keys, holds = q.keys or {}, {}
    local stored = fields_of(q.base .. ':held', keys)
    for j = 1, #keys do
      if stored[j] then
        holds[keys[j]], are_free = stored[j], false
      end
    end
    q.holds, q.taken, q.number_taken, q.throttled = holds, {}, 0, {}
  end
  local keyed = {
    queues = queues, rare_of = rare_of, text_of = text_of, store = store, only_looks = only_looks, holders = {},
  }
  return keyed, are_free
end

-- Gives the key of a job to it; takes what it has rarely.
local function hold_key(q, id, own)
  local key, hold, number = own[KEY], id, q.number_taken + 2
  if own[MODE] == '{{MODE_THROTTLE}}' then
    local till = q.now + own[TTL]
    hold = pack_hold(id, till)
    q.throttled[#q.throttled + 1] = whole(till)
    q.throttled[#q.throttled + 1] = key
  end
  q.holds[key], q.number_taken, q.taken[number - 1], q.taken[number] = hold, number, key, hold
end

local function write_so_far(q)
  write_added(q)
  begin_adding(q)
  q.taken, q.number_taken, q.throttled = {}, 0, {}
end

-- Takes the key of a job; if another job holds it, returns what `meet` returns.
local function take_key(keyed, q, id, own, text)
  if q.holds[own[KEY]] then
    local found, follows = with_rules().meet(keyed.queues, q, id, own, text, not keyed.only_looks and write_so_far)
    if found then
      return found, follows
    end
  end
  hold_key(q, id, own)
  return nil
end

-- Whether all parents of a job were dropped.
local function is_orphan(own, dropped)
  local from = own and own[FROM]
  for i = 1, from and #from or 0 do
    if not dropped[from[i][1] .. ' ' .. from[i][2]] then
      return false
    end
  end
  return from and true
end

-- Stores a job unless its key is held, or its parents are among those `dropped` for that reason. Returns its code.
local function admit(keyed, job, at, dropped)
  local own, q, id = keyed.rare_of[at], keyed.queues[job[QUEUE]], job[ID]
  local key, holders = own and own[KEY], keyed.holders
  if next(dropped) and is_orphan(own, dropped) then
    dropped[job[QUEUE] .. ' ' .. id] = true
    return '{{SKIPPED}}'
  end
  local found, follows
  if key then
    found, follows = take_key(keyed, q, id, own, keyed.text_of[at])
  end
  if follows then
    -- The job that holds the key is active: this one waits for its end.
    job[PRIORITY], job[LIFO], job[DELAY], job[DUE_AT] = job[PRIORITY] or 0, job[LIFO] or false, 0, {{LAST_INSTANT}}
  elseif found then
    dropped[job[QUEUE] .. ' ' .. id], holders[#holders + 1] = true, found
    q.deduplicated = q.deduplicated or { is_first = #q.duplicated == 0 }
    q.deduplicated[#q.deduplicated + 1] = '["' .. found .. '",{"key":' .. cjson.encode(key) .. ',"discarded":"'
      .. with_rules().in_full(id) .. '"}]'
    return '{{DEDUPLICATED_CODE}}'
  end
  keyed.store(job, at)
  return '{{CREATED}}'
end
