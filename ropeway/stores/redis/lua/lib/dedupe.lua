-- What an add does if another job holds its dedupe key: the table of job/dedupe.py.
-- Uses: child_keys, dedupe_keys, changing, leaving_states, revoking, options, rare_fields
local ACTIONS, ALWAYS_FINDS = {{ACTIONS}}, {{ALWAYS_FINDS}}

-- Gives the data of a discarded job to one that is there, if that has the same name and is not active; and, if it is
-- given, another due time.
local function refresh(q, id, text, due_at)
  local job, name, data_at = load_job(q, id), read_text(text, 1)
  if not job then
    return
  end
  if name_of(job.value) == name and job.state ~= '{{ACTIVE}}' then
    call('HSET', q.base .. ':jobs', id, with_data(job.value, (read_text(text, data_at))))
  end
  if due_at then
    call('ZADD', q.base .. ':delayed', whole(due_at), sub(job.place, 4) .. id)
  end
end

-- Cancels jobs whose place another takes.
local function supersede(q, ids, by)
  local step, cancelled = step_of(q), begin_ending(q, '{{CANCEL}}', '{{CANCELLED}}')
  local reason = '{{SUPERSEDED}}' .. in_full(by)
  for _, id in ipairs(ids) do
    local job = load_job(q, id)
    if job and not IS_FINAL[job.state] then
      local run, keep = job.run or blank_run(job.place), read_stored_options(q, job.value, {{DEFAULTS}}).keep
      leave_state(q, job)
      if job.state == '{{ACTIVE}}' then
        revoke(q, id, run, '{{CANCELLED}}')
        if q.row[MAX_ACTIVE] > 0 then
          wake(q, 'jobs')
        end
      end
      call('HSET', q.base .. ':reasons', id, reason)
      count(q, COUNTERS[job.state], nil, 1)
      end_job(cancelled, id, sub(without_token(run), STARTED_AT), keep,
        '{"prev":"' .. job.state .. '","reason":' .. cjson.encode(reason) .. '}', reason)
    end
  end
  write_ending(q, cancelled)
  step.endings[#step.endings + 1] = { q, cancelled }
end

-- Puts a job behind the holder of its key, or gives its data to the one that is there. Returns the id of that job.
local function follow(q, id, key, hold, text, only_looks)
  local next = hold.next and load_job(q, hold.next)
  -- One that was promoted by hand may be active: then the new job waits for its end instead.
  local is_started = next and next.state == '{{ACTIVE}}'
  local found = hold.next and not is_started and hold.next or id
  if only_looks then
    return found
  elseif found ~= id then
    refresh(q, found, text)
    return found
  end
  -- At the end of the holder the key passes on, also if it was held for a time: else nothing would start the job.
  local stored = pack_hold(is_started and hold.next or hold.id, 0, id)
  call('HSET', q.base .. ':held', key, stored)
  q.holds[key] = stored
  return id
end

-- Takes a job of the queue `q` whose key may be held, and what it has rarely; `write` writes what the call has added to a
-- queue so far, and is false if it only looks. Returns nil if the job takes the key; else the id of the job that is found
-- instead, or its own and true if it has to wait for the end of the holder. (A holder that was removed may have had its id.)
local function meet(queues, q, id, own, text, write)
  local hold, mode = read_hold(q.holds[own[KEY]]), own[MODE] or '{{DEFAULT_MODE}}'
  if is_over(hold, q.now) then
    return nil
  elseif ALWAYS_FINDS[mode] then
    return hold.id
  end
  if write then
    share_step(queues)
    for i = 1, #queues do
      write(queues[i])
    end
    -- The holder may be one that goes on because another has ended.
    start_followers(q.step)
  end
  local holder = load_job(q, hold.id)
  local action = ACTIONS[mode][holder and holder.state or '{{COMPLETED}}']
  if action == '{{ACTION_FIND}}' then
    return hold.id
  elseif action == '{{ACTION_REFRESH}}' or action == '{{ACTION_POSTPONE}}' then
    if write then
      refresh(q, hold.id, text, action == '{{ACTION_POSTPONE}}' and q.now + own[TTL])
    end
    return hold.id
  elseif action == '{{ACTION_FOLLOW}}' then
    local found = follow(q, id, own[KEY], hold, text, not write)
    return found, found == id
  end
  if write and action == '{{ACTION_REPLACE}}' then
    -- The follower first: it would go on when the holder ends.
    supersede(q, hold.next and { hold.next, hold.id } or { hold.id }, id)
  elseif write then
    -- The key passes to the new job, so nothing else would let the follower go on.
    start_next(q, hold)
  end
  return nil
end
