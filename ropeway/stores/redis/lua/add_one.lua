-- Stores one job that waits like most: without delay or priority, first come, first served.
-- Takes the queue's base; the job's id, its name, its name as JSON, its text, now or an empty text, and what it has rarely,
-- if it has anything (see lib/rare_fields.lua).
-- Returns c if it was created in a queue that was there before; else what `add` returns.
-- Uses: row, rare_fields
-- Rarely: bundles, promotion, repeated_claims
-- In flows: flows
-- New flows: flow_bundles
-- With rules: leaving, expiry, dedupe
-- The usual calls few commands and makes no functions, which cost as much.
local base, id, name, text = KEYS[1], ARGV[1], ARGV[2], ARGV[4]
local call, pack = redis.call, struct.pack

-- A loop that runs once: whatever is unusual breaks out of it, and goes the way of bundles.
repeat
  local stored = call('GET', base)
  if not stored or #stored < NAMES_AT - 1 then
    break
  end
  local row = { struct.unpack(NUMBERS, stored) }
  local now = tonumber(ARGV[5])
  if not now then
    now = call('TIME')
    now = now[1] * 1000 + math.floor(now[2] / 1000)
  end
  -- It is no row of ours, the clock was set back, or has more digits than concatenation writes, a minute began, or
  -- events are to be trimmed.
  if row[FORMAT] ~= THIS_FORMAT or now < row[AT] or row[SKEW] > 0 or now >= 1e14 or now - now % 60000 ~= row[MINUTE]
    or row[EVENTS] % EVENTS_KEPT > EVENTS_KEPT - 8 then
    break
  end
  local parked, request, channel, names
  if row[PARKED_UNTIL] >= now then
    if row[WAITING] > 0 or row[DELAYED] > 0 or row[PAUSED] > 0 or row[MAX_ACTIVE] > 0 or ARGV[6]
      or #stored >= NAMES_AT + row[HEADED_LENGTH] then
      break
    end
    parked = call('ZRANGE', base .. ':parked', 0, 0, 'WITHSCORES')
    if parked[1] then
      request, channel = unpack(cmsgpack.unpack(parked[1]))
      -- It has ended and others may be parked too, or it asks for certain names.
      if tonumber(parked[2]) < now or request[6] or #request[1] > 255 or #request[2] > 255 then
        break
      end
    else
      row[PARKED_UNTIL] = 0
    end
  end

  local rare = ARGV[6] and cmsgpack.unpack(ARGV[6])
  if rare and rare[KEY] then
    local hold, till = id, rare[MODE] == '{{MODE_THROTTLE}}' and now + rare[TTL]
    if till then
      -- See lib/holds.lua.
      hold = '\0' .. pack('>I8B', till, #id) .. id
    end
    if rare[START_WITHIN] or rare[START_BY] or call('HSETNX', base .. ':held', rare[KEY], hold) == 0 then
      break
    elseif till then
      call('ZADD', base .. ':throttled', string.format('%.0f', till), rare[KEY])
    end
  elseif rare and (rare[START_WITHIN] or rare[START_BY]) then
    break
  end
  local seq, events = row[SEQ] + 1, row[EVENTS] + 2
  local place = pack('>I4I6', 2147483776, seq)
  local value = text .. place .. pack('>I6', now)
  if call('HSETNX', base .. ':jobs', id, value) == 0 then
    if rare and rare[KEY] then
      call('HDEL', base .. ':held', rare[KEY])
    end
    break
  end
  row[AT], row[SEQ], row[EVENTS], row[ADDED] = now, seq, events, row[ADDED] + 1
  call('XADD', base .. ':events', events .. '-' .. row[EPOCH], 'e',
    '["{{ADD}}",' .. now .. ',"{{WAITING}}",[["' .. id .. '",{"name":' .. ARGV[3] .. '}]],null]')

  if request then
    call('ZREM', base .. ':parked', parked[1])
    local token = request[1]
    local message = pack('>I4I8I8', #token, now, 0) .. token .. pack('>I4I4I4', #id, #value, 0) .. id .. value
    if call('PUBLISH', channel, message) == 0 then
      -- The worker is gone.
      request = nil
    end
  end
  if request then
    -- From here to the worker without standing in line, as if claimed in the same moment.
    local token, worker, lock = request[1], request[2], now + request[5]
    local run = 'a' .. pack('>BI8BI8BI8BI8BI4BI4BI4', 207, lock, 207, 0, 207, now, 207, now, 206, 0, 206, 1, 206, 0)
      .. '\217' .. string.char(#token) .. token .. '\217' .. string.char(#worker) .. worker .. place
    call('HSET', base .. ':runs', id, run)
    call('ZADD', base .. ':locks', string.format('%.0f', lock), id)
    row[ACTIVE], row[EVENTS] = row[ACTIVE] + 1, events + 1
    call('XADD', base .. ':events', events + 1 .. '-' .. row[EPOCH], 'e',
      '["{{CLAIM}}",' .. now .. ',"{{ACTIVE}}",[["' .. id .. '",null]],{"worker":' .. request[3] .. '}]')
    call('PUBLISH', base .. ':events', '')
  else
    local line, member = base .. ':waiting:' .. name, place .. id
    call('ZADD', line, '0', member)
    if string.sub(stored, NAMES_AT, NAMES_AT + row[HEADED_LENGTH] - 1) ~= name then
      -- It stands behind all others of its priority, but perhaps before less urgent ones. A head that is there already
      -- is written once more: somebody may have evicted it.
      local first = call('ZRANGE', line, 0, 1)
      call('ZADD', base .. ':heads', '0', string.sub(first[1], 1, 10) .. name)
      if first[1] == member and first[2] then
        call('ZREM', base .. ':heads', string.sub(first[2], 1, 10) .. name)
      end
      names = name .. string.sub(stored, NAMES_AT + row[HEADED_LENGTH])
      row[HEADED_LENGTH] = #name
    end
    row[WAITING] = row[WAITING] + 1
    call('PUBLISH', base .. ':jobs', '')
  end
  if rare then
    call('HSET', base .. ':extras', id, rare[EXTRAS])
    call('HSET', base .. ':runs', id, 'o'
      .. pack('>BI8BI8BI8BI8BI4BI4BI4', 207, 0, 207, 0, 207, 0, 207, 0, 206, 0, 206, 0, 210, 0) .. '\192\192' .. place)
  end
  row = pack(NUMBERS, unpack(row, 1, HEADED_LENGTH))
  if names then
    call('SET', base, row .. names)
  else
    call('SETRANGE', base, 0, row)
  end
  return '{{CREATED}}'
until true
local names, bundles = { { name, ARGV[3] } }, { { { id, #text, 1, 1 } } }
local rare = ARGV[6] and { cmsgpack.unpack(ARGV[6]) } or {}
return rarely().add_bundles(tonumber(ARGV[5]) or false, names, bundles, 1, false, rare, text)
