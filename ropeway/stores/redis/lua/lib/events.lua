-- What happened, told in the stream of the queue and in its metrics.
-- Uses: queue
local METRICS = {
  complete = 'completed', retry = 'retried', fail = 'failed', stall = 'stalled', ['give up'] = 'failed',
  ['fail by child'] = 'failed', cancel = 'cancelled', remove = 'removed',
}

-- The jobs of an entry, as JSON, where each has the same detail.
local function each(ids, detail)
  return '["' .. table.concat(ids, '",' .. detail .. '],["') .. '",' .. detail .. ']'
end

local function begin_minute(q, minute)
  local row = q.row
  if row[ADDED] > 0 then
    call('HINCRBY', q.base .. ':metrics', whole(row[MINUTE]) .. 'added', row[ADDED])
  end
  row[MINUTE], row[ADDED] = minute, 0
  call('ZADD', q.base .. ':minutes', minute, whole(minute))
end

-- `jobs` is JSON: pairs of an id and its details, `number` of them; `detail` is JSON too.
local function announce(q, what, to, number, jobs, detail)
  local row = q.row
  local before = row[EVENTS]
  -- Readers make two events of each job that is told of so.
  local is_double = what == 'add' or what == 'retry' or what == 'stall' or what == 'give up'
  row[EVENTS] = before + (is_double and 2 or 1) * math.max(number, 1)
  local entry = '["' .. what .. '",' .. whole(q.now) .. ',' .. (to and '"' .. to .. '"' or 'null') .. ',['
    .. (jobs or '') .. '],' .. (detail or 'null') .. ']'
  call('XADD', q.base .. ':events', whole(row[EVENTS]) .. '-' .. row[EPOCH], 'e', entry)
  local metric, minute = METRICS[what], q.now - q.now % 60000
  if (metric or what == 'add') and row[MINUTE] ~= minute then
    begin_minute(q, minute)
  end
  if metric then
    call('HINCRBY', q.base .. ':metrics', whole(minute) .. metric, number)
    if what == 'give up' then
      call('HINCRBY', q.base .. ':metrics', whole(minute) .. 'stalled', number)
    end
  elseif what == 'add' then
    row[ADDED] = row[ADDED] + number
  end
  -- Producers alone, without a worker that ticks, must not fill the memory with events.
  if math.floor(row[EVENTS] / EVENTS_KEPT) > math.floor(before / EVENTS_KEPT) and row[EVENTS] > 2 * EVENTS_KEPT then
    if call('XTRIM', q.base .. ':events', 'MINID', '~', whole(row[EVENTS] - EVENTS_KEPT) .. '-0', 'LIMIT', 0) > 0 then
      row[EVENTS_FROM] = -1
    end
  end
  q.changed = true
  wake(q, 'events')
end
