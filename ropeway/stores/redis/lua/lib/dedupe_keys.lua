-- Frees dedupe keys, and lets jobs go on that wait for the end of those that held them.
-- Uses: holds, steps, lines, jobs, events

-- The job that waits for the end of a holder goes on when the step is concluded, if it still waits then.
local function start_next(q, hold)
  if hold.next then
    local step = step_of(q)
    step.followers[#step.followers + 1] = { q, hold.next }
  end
end

-- Frees the keys of jobs that have ended, or are removed: `keys` and `ids` in the same order. A key that is held for a time
-- stays, unless the job is removed before its end.
local function free_keys(q, keys, ids, is_final)
  local stored, holds, gone, kept, changed = fields_of(q.base .. ':held', keys), {}, {}, {}, {}
  for i = 1, #keys do
    local key, id = keys[i], ids[i]
    -- Another job of these may have changed it.
    local hold = holds[key] or (stored[i] and read_hold(stored[i]))
    if hold then
      holds[key] = hold
      if hold.next == id then
        hold.next, changed[key] = nil, true
      elseif hold.id == id and (hold.till == 0 or not is_final) then
        start_next(q, hold)
        hold.id, hold.till, hold.next, changed[key] = hold.next, 0, nil, true
      end
    end
  end
  for key in pairs(changed) do
    local hold = holds[key]
    if hold.id then
      kept[#kept + 1] = key
      kept[#kept + 1] = pack_hold(hold.id, hold.till, hold.next)
    else
      gone[#gone + 1] = key
    end
  end
  call_with('HSET', q.base .. ':held', kept)
  call_with('HDEL', q.base .. ':held', gone)
end

local function promote_follower(q, id)
  local job = load_job(q, id)
  if job and job.state == '{{DELAYED}}' then
    call('ZREM', q.base .. ':delayed', sub(job.place, 4) .. id)
    put_in_line(q, name_of(job.value), { job.place .. id })
    count(q, DELAYED, WAITING, 1)
    announce(q, '{{PROMOTE}}', '{{WAITING}}', 1, each({ id }, 'null'))
    wake(q, 'jobs')
  end
end

local function start_followers(step)
  local followers = step.followers
  step.followers = {}
  for _, follower in ipairs(followers) do
    promote_follower(unpack(follower))
  end
end
