-- Promotes what is due, recovers what stalled, fails what expired, removes what retention ends, trims what is old.
-- Takes the queue's base; [now, max_stalled_count, fails at once, counts as attempt, how processes ended (by process),
-- default options].
-- Returns promoted, stalled ids, given up ids, removed, next instant or false, whether there is more, the clock, how many
-- expired, ids and values of due schedules in turn, how many bundles are in the outbox, and how many jobs became stale.
-- Uses: room, announcing, promotion, history, changing, options, holds
-- In flows: flows
-- With rules: leaving, expiry, stages
local METRICS_KEPT, MINUTES_TRIMMED = {{METRICS_KEPT}}, 500
local IS_GIVEN_UP, REASON_HEADS, FINAL = {{IS_GIVEN_UP}}, {{REASON_HEADS}}, {{FINAL}}
local now, most_stalls, fails_at_once, is_attempt, ended, defaults = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, row = q.base, q.row
local stalled, given_up = {}, {}

local function worker_of(run)
  local _, worker = holder_of(run)
  return read_text(worker, 1) or ''
end

local function date_of(instant)
  local days, seconds = math.floor(instant / 86400000), math.floor(instant % 86400000 / 1000)
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', yoe + era * 400 + (month <= 2 and 1 or 0), month,
    doy - math.floor((153 * mp + 2) / 5) + 1, math.floor(seconds / 3600), math.floor(seconds % 3600 / 60), seconds % 60,
    instant % 1000)
end

-- As `stall_reason` of job/stalls.py. Whoever holds a lock has a name.
local function reason_of(verdict, worker, run)
  local how = ended[string.match(worker, '^(.*):')]
  return REASON_HEADS[verdict] .. worker
    .. (how and '{{BEFORE_PROCESS_END}}' .. how .. '{{AFTER_PROCESS_END}}' or '{{BEFORE_RENEWAL}}')
    .. date_of(time_at(run, RENEWED_AT))
end

-- As `judge_stall` of job/stalls.py.
local function judge(run, attempts)
  if fails_at_once then
    return '{{AT_ONCE}}'
  end
  local stalls, verdict = count_at(run, STALLED), '{{WAITS}}'
  if stalls + 1 > most_stalls then
    verdict = '{{TOO_OFTEN}}'
  elseif is_attempt and count_at(run, MADE) + 1 >= attempts then
    verdict = '{{LAST_ATTEMPT}}'
  end
  local is_alone = sub(run, FINISHED_AT, STARTED_AT - 1) == ALONE
  return verdict ~= '{{WAITS}}' and stalls > 0 and not is_alone and '{{SPARED}}' or verdict
end

-- Returns the ending of those that are given up; `conclude` and `apply_retention` must follow.
local function recover()
  local ids = call('ZRANGEBYSCORE', base .. ':locks', '-inf', q.now, 'LIMIT', 0, BATCH)
  if #ids == 0 then
    return
  end
  local values, runs = fields_of(base .. ':jobs', ids), fields_of(base .. ':runs', ids)
  local lines, written, reasons, announced_stalled, lost = {}, {}, {}, {}, {}
  local failed = begin_ending(q, '{{GIVE_UP}}', '{{FAILED}}')
  for i = 1, #ids do
    local id, value, run = ids[i], values[i], runs[i]
    if value and run then
      local options = read_stored_options(q, value, defaults)
      local stalls = count_at(run, STALLED) + 1
      local verdict, worker = judge(run, options.attempts), worker_of(run)
      local is_lost = IS_GIVEN_UP[verdict]
      local made = count_at(run, MADE) + (is_attempt and verdict ~= '{{SPARED}}' and 1 or 0)
      local reason = reason_of(verdict, worker, run)
      local detail = '{"worker":' .. cjson.encode(worker) .. ',"stalled_count":' .. stalls
      remember_failure(q, id, run, reason, '', options.stack_traces)
      run = without_token(run)
      if is_lost then
        detail = detail .. ',"reason":' .. cjson.encode(reason)
          .. (verdict == '{{LAST_ATTEMPT}}' and ',"exhausted":true}' or '}')
        end_job(failed, id, with_counters(run, pack_count(made), pack_count(stalls)), options.keep, detail, reason)
      else
        add_to(lines, name_of(value), sub(run, -10) .. id)
        announced_stalled[#announced_stalled + 1] = '["' .. id .. '",' .. detail .. '}]'
        stalled[#stalled + 1] = id
        written[#written + 1] = id
        written[#written + 1] = waiting_run(run, pack_count(made), pack_count(stalls))
      end
      reasons[#reasons + 1] = id
      reasons[#reasons + 1] = reason
    else
      lost[#lost + 1] = id
    end
  end
  call_with('ZREM', base .. ':locks', ids)
  call_with('HSET', base .. ':runs', written)
  call_with('HSET', base .. ':reasons', reasons)
  put_all_in_line(q, lines)
  count(q, ACTIVE, WAITING, #stalled)
  count(q, ACTIVE, nil, failed.number)
  given_up = failed.ids
  if #stalled > 0 then
    announce_all(q, '{{STALL}}', '{{WAITING}}', announced_stalled)
  end
  write_ending(q, failed)
  drop_lost(q, '{{ACTIVE}}', lost)
  wake(q, 'jobs')
  return failed
end

local function remove_old()
  local removed = 0
  for _, state in ipairs(FINAL) do
    local set = base .. ':expiring:' .. state
    local members = call('ZRANGEBYSCORE', set, '-inf', q.now, 'LIMIT', 0, BATCH - removed)
    if #members > 0 then
      drop_finished(q, state, members)
      removed = removed + #members
    end
  end
  return removed
end

local function trim()
  local more = false
  if row[EVENTS] > EVENTS_KEPT then
    local oldest = call('XRANGE', base .. ':events', '-', '+', 'COUNT', 1)[1]
    if oldest and tonumber(string.match(oldest[1], '^%d+')) <= row[EVENTS] - EVENTS_KEPT then
      if call('XTRIM', base .. ':events', 'MINID', '~', whole(row[EVENTS] - EVENTS_KEPT) .. '-0') > 0 then
        row[EVENTS_FROM], q.changed = -1, true
      end
    end
  end
  local minutes = call('ZRANGEBYSCORE', base .. ':minutes', '-inf', '(' .. whole(q.now - METRICS_KEPT), 'LIMIT', 0,
    MINUTES_TRIMMED)
  if #minutes > 0 then
    local fields = {}
    for _, metric in ipairs({{METRICS}}) do
      for i = 1, #minutes do
        fields[#fields + 1] = minutes[i] .. metric
      end
    end
    call_with('HDEL', base .. ':metrics', fields)
    call_with('ZREM', base .. ':minutes', minutes)
    if row[MINUTE] < q.now - METRICS_KEPT then
      row[ADDED], q.changed = 0, true
    end
    more = #minutes == MINUTES_TRIMMED
  end
  local revoked, old = call('ZRANGE', base .. ':revoked', 0, BATCH - 1), 0
  for i = 1, #revoked do
    if cmsgpack.unpack(revoked[i])[2] >= q.now - {{REVOKED_KEPT}} then
      break
    end
    old = i
  end
  if old > 0 then
    call('ZREMRANGEBYRANK', base .. ':revoked', 0, old - 1)
  end
  return more or old == BATCH
end

-- Frees dedupe keys whose time is over.
local function free_old_keys()
  local keys = call('ZRANGEBYSCORE', base .. ':throttled', '-inf', q.now, 'LIMIT', 0, BATCH)
  local stored, over = fields_of(base .. ':held', keys), {}
  for i = 1, #keys do
    if stored[i] and is_over(read_hold(stored[i]), q.now) then
      over[#over + 1] = keys[i]
    end
  end
  call_with('HDEL', base .. ':held', over)
  call_with('ZREM', base .. ':throttled', keys)
  return #keys == BATCH
end

local function due_schedules()
  local due = {}
  if row[SCHEDULES] > 0 then
    local ids = call('ZRANGEBYSCORE', base .. ':due', '-inf', q.now, 'LIMIT', 0, {{DUE_SCHEDULES}})
    local stored = fields_of(base .. ':schedules', ids)
    for i = 1, #ids do
      if stored[i] then
        due[#due + 1] = ids[i]
        due[#due + 1] = stored[i]
      end
    end
  end
  return due
end

local function next_at()
  local earliest, sets = nil, { ':delayed', ':locks', ':deadlines', ':due' }
  for _, state in ipairs(FINAL) do
    sets[#sets + 1] = ':expiring:' .. state
  end
  for _, set in ipairs(sets) do
    local at = tonumber(call('ZRANGE', base .. set, 0, 0, 'WITHSCORES')[2])
    if at and (not earliest or at < earliest) then
      earliest = at
    end
  end
  local of_stages = row[CONFIGURED] == WITH_STAGES and with_rules().next_stage_at(q)
  return of_stages and earliest and math.min(earliest, of_stages) or of_stages or earliest or false
end

local promoted = promote_due(q)
local failed = recover()
local expired = row[DEADLINE] > 0 and row[DEADLINE] <= q.now and with_rules().expire_due(q) or 0
-- Only now: a parent that has expired does not fail by the child that was given up.
if q.step then
  in_flows().conclude(q)
end
if failed then
  apply_retention(q, failed)
end
local removed, stale, deleted, more_of_stages = remove_old(), 0, 0, false
if row[CONFIGURED] == WITH_STAGES then
  stale, deleted, more_of_stages = with_rules().apply_stages(q)
  if q.step then
    in_flows().conclude(q)
  end
end
notice_drained(q)
local more = trim() or free_old_keys() or promoted == BATCH or removed == BATCH or expired == BATCH
  or #stalled + #given_up == BATCH or more_of_stages
close_queue(q)
return {
  promoted, stalled, given_up, removed + deleted, next_at(), more and 1 or 0, q.now, expired, due_schedules(),
  call('HLEN', base .. ':outbox'), stale,
}
