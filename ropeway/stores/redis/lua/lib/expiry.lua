-- Jobs that were not started in time.
-- Uses: jobs, changing, leaving_states, options, announcing
local EXPIRED = '{{EXPIRED_REASON}}'

-- Jobs whose deadline has passed, at most BATCH, in the order of deadlines and adds.
local function late_jobs(q)
  local found = call('ZRANGEBYSCORE', q.base .. ':deadlines', '-inf', whole(q.now), 'WITHSCORES', 'LIMIT', 0, BATCH)
  local late, ids = {}, {}
  for i = 1, #found, 2 do
    local job = load_job(q, found[i])
    ids[#ids + 1] = found[i]
    if job and not IS_FINAL[job.state] and job.state ~= '{{ACTIVE}}' then
      local high, low = struct.unpack('>BI6', sequence_of(job.place))
      late[#late + 1] = { job, tonumber(found[i + 1]), high, low }
    end
  end
  table.sort(late, function(one, other)
    for i = 2, 4 do
      if one[i] ~= other[i] then
        return one[i] < other[i]
      end
    end
    return false
  end)
  return late, ids
end

-- Fails them, and does what follows from that; what went into the outbox is in `q.posted` then. Returns how many deadlines had
-- passed.
local function expire_due(q)
  local late, ids = late_jobs(q)
  local failed, reasons = begin_ending(q, '{{EXPIRE}}', '{{FAILED}}'), {}
  local detail = '{"reason":' .. cjson.encode(EXPIRED) .. '}'
  call_with('ZREM', q.base .. ':deadlines', ids)
  q.row[DEADLINE] = tonumber(call('ZRANGE', q.base .. ':deadlines', 0, 0, 'WITHSCORES')[2]) or 0
  q.changed = true
  for _, one in ipairs(late) do
    local job = one[1]
    leave_state(q, job)
    count(q, COUNTERS[job.state], nil, 1)
    reasons[#reasons + 1] = job.id
    reasons[#reasons + 1] = EXPIRED
    local run, keep = job.run or blank_run(job.place), read_stored_options(q, job.value, {{DEFAULTS}}).keep
    end_job(failed, job.id, sub(without_token(run), STARTED_AT), keep, detail, EXPIRED)
  end
  call_with('HSET', q.base .. ':reasons', reasons)
  write_ending(q, failed)
  local posted = q.step and in_flows().conclude(q) or {}
  q.posted = #posted > 0 and posted or q.posted
  apply_retention(q, failed)
  if q.busy > 0 and q.row[WAITING] + q.row[ACTIVE] == 0 then
    notice_drained(q)
    q.busy = 0
  end
  return #ids
end
