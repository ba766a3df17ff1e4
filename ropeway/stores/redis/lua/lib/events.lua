-- What happened, told in the stream of the queue and in its metrics.
-- How many events readers make of each job of an entry; one where nothing is said.
local NAMES = { add = 2, retry = 2, stall = 2, ['give up'] = 2 }
local METRICS = {
  add = { 'added' }, complete = { 'completed' }, retry = { 'retried' }, fail = { 'failed' }, stall = { 'stalled' },
  ['give up'] = { 'failed', 'stalled' }, cancel = { 'cancelled' }, remove = { 'removed' },
}

local function trim_events(q)
  call('XTRIM', q.base .. ':events', 'MINID', '~', whole(q.row[EVENTS] - EVENTS_KEPT) .. '-0')
  q.row[EVENTS_FROM] = -1
  q.changed = true
end

-- The jobs of an entry, as JSON, where each has the same detail.
local function each(ids, detail)
  return '["' .. table.concat(ids, '",' .. detail .. '],["') .. '",' .. detail .. ']'
end

-- `jobs` is JSON: pairs of an id and its details, `number` of them; `detail` is JSON too.
local function announce(q, what, to, number, jobs, detail)
  local row = q.row
  local before = row[EVENTS]
  row[EVENTS] = before + (NAMES[what] or 1) * math.max(number, 1)
  local entry = '["' .. what .. '",' .. whole(q.now) .. ',' .. (to and '"' .. to .. '"' or 'null') .. ',[' .. (jobs or '')
    .. '],' .. (detail or 'null') .. ']'
  call('XADD', q.base .. ':events', whole(row[EVENTS]) .. '-' .. row[EPOCH], 'e', entry)
  local metrics = METRICS[what]
  if metrics then
    local minute = q.now - q.now % 60000
    for i = 1, #metrics do
      call('HINCRBY', q.base .. ':metrics', whole(minute) .. metrics[i], number)
    end
    if row[MINUTE] ~= minute then
      row[MINUTE] = minute
      call('ZADD', q.base .. ':minutes', minute, whole(minute))
    end
  end
  -- Producers alone, without a worker that ticks, must not fill the memory with events.
  if math.floor(row[EVENTS] / EVENTS_KEPT) > math.floor(before / EVENTS_KEPT) and row[EVENTS] > 2 * EVENTS_KEPT then
    trim_events(q)
  end
  q.changed = true
  wake(q, 'events')
end

-- The same for jobs told one by one.
local function announce_all(q, what, to, jobs, detail)
  announce(q, what, to, #jobs, table.concat(jobs, ','), detail)
end

local function notice_drained(q)
  if q.busy > 0 and q.row[WAITING] + q.row[ACTIVE] == 0 then
    announce(q, 'drained', nil, 0)
  end
end
