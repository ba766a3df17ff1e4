-- Stores one job that waits like most: without delay or priority, first come, first served.
-- Takes the queue's base; the job's id, its name, its name as JSON, its text, and now, if it is given.
-- Returns c if it was created in a queue that was there before; else what `add` returns.
-- Uses: row
-- Rarely: bundles, promotion, holding
-- Whatever is unusual goes the way of bundles. The usual calls few commands and makes no functions, which cost as much.
local base, id, name_json, text = KEYS[1], ARGV[1], ARGV[3], ARGV[4]
local call, pack, format = redis.call, struct.pack, string.format

local function unusual()
  return rarely().add_all(tonumber(ARGV[5]) or false, { { ARGV[2], name_json } }, { { { id, #text, 1, 1 } } }, 1, false, text)
end

local row = call('GET', base)
if not row then
  return unusual()
end
row = cmsgpack.unpack(row)
local now = tonumber(ARGV[5])
if not now then
  now = call('TIME')
  now = now[1] * 1000 + math.floor(now[2] / 1000)
end
-- The clock was set back, a minute began, or events are to be trimmed.
if now < row[AT] or row[SKEW] > 0 or now - now % 60000 ~= row[MINUTE] or row[EVENTS] % EVENTS_KEPT > EVENTS_KEPT - 8 then
  return unusual()
end
local standing, request, channel
if row[STANDING] >= now then
  if row[WAITING] > 0 or row[DELAYED] > 0 or row[PAUSED] or row[MAX_ACTIVE] > 0 or #row[PAUSED_NAMES] > 0 then
    return unusual()
  end
  standing = call('ZRANGE', base .. ':standing', 0, 0, 'WITHSCORES')
  if standing[1] then
    request, channel = unpack(cmsgpack.unpack(standing[1]))
    -- It has ended and others may stand behind it, or it asks for certain names.
    if tonumber(standing[2]) < now or request[6] or #request[1] > 255 or #request[2] > 255 then
      return unusual()
    end
  else
    row[STANDING] = 0
  end
end

local seq = row[SEQ] + 1
local place = pack('>I4I6', 2147483776, seq)
local value = text .. place .. pack('>I6', now)
if call('HSETNX', base .. ':jobs', id, value) == 0 then
  return unusual()
end
local at, epoch = format('%.0f', now), '-' .. row[EPOCH]
local entry = '["add",' .. at .. ',"waiting",[["' .. id .. '",{"name":' .. name_json .. '}]],null]'
row[AT], row[SEQ], row[EVENTS], row[ADDED] = now, seq, row[EVENTS] + 2, row[ADDED] + 1
call('XADD', base .. ':events', format('%.0f', row[EVENTS]) .. epoch, 'e', entry)

if request then
  call('ZREM', base .. ':standing', standing[1])
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
  call('ZADD', base .. ':locks', format('%.0f', lock), id)
  row[ACTIVE], row[EVENTS] = row[ACTIVE] + 1, row[EVENTS] + 1
  entry = '["claim",' .. at .. ',"active",[["' .. id .. '",null]],{"worker":' .. request[3] .. '}]'
  call('XADD', base .. ':events', format('%.0f', row[EVENTS]) .. epoch, 'e', entry)
  call('PUBLISH', base .. ':events', '')
else
  local line = base .. ':waiting:' .. ARGV[2]
  call('ZADD', line, '0', place .. id)
  -- It stands behind all others of its priority, but perhaps before less urgent ones.
  local first = call('ZRANGE', line, 0, 1)
  if first[1] == place .. id then
    call('ZADD', base .. ':heads', '0', place .. ARGV[2])
    if first[2] then
      call('ZREM', base .. ':heads', string.sub(first[2], 1, 10) .. ARGV[2])
    end
  end
  row[WAITING] = row[WAITING] + 1
  call('PUBLISH', base .. ':jobs', '')
end
call('SET', base, cmsgpack.pack(row))
return 'c'
