-- Writes events into the stream of a queue, and counts them in its metrics.
-- Uses: queue
local METRIC_OF = {{METRIC_OF}}

-- The jobs of an entry, as JSON, where each has the same detail.
local function each(ids, detail)
  return '["' .. table.concat(ids, '",' .. detail .. '],["') .. '",' .. detail .. ']'
end

local function begin_minute(q, minute)
  local row = q.row
  if row[ADDED] > 0 then
    call('HINCRBY', q.base .. ':metrics', whole(row[MINUTE]) .. '{{ADDED}}', row[ADDED])
  end
  row[MINUTE], row[ADDED] = minute, 0
  call('ZADD', q.base .. ':minutes', minute, whole(minute))
end

-- `jobs` is JSON: pairs of an id and its details, `number` of them; `detail` is JSON too.
local function announce(q, what, to, number, jobs, detail)
  local row = q.row
  local before = row[EVENTS]
  -- Readers make two events of each job of such a move.
  local is_double = {{WHAT_IS_DOUBLE}}
  row[EVENTS] = before + (is_double and 2 or 1) * math.max(number, 1)
  local entry = '["' .. what .. '",' .. whole(q.now) .. ',' .. (to and '"' .. to .. '"' or 'null') .. ',['
    .. (jobs or '') .. '],' .. (detail or 'null') .. ']'
  call('XADD', q.base .. ':events', whole(row[EVENTS]) .. '-' .. row[EPOCH], 'e', entry)
  local metric, minute = METRIC_OF[what], q.now - q.now % 60000
  if metric and row[MINUTE] ~= minute then
    begin_minute(q, minute)
  end
  if what == '{{ADD}}' then
    row[ADDED] = row[ADDED] + number
  elseif metric then
    local second = {{SECOND_METRIC_OF_WHAT}}
    call('HINCRBY', q.base .. ':metrics', whole(minute) .. metric, number)
    if second then
      call('HINCRBY', q.base .. ':metrics', whole(minute) .. second, number)
    end
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
