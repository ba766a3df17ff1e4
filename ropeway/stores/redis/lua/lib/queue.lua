-- A queue's counters and settings: its row, read once and written once by each script.
-- Uses: calls, row

local function read_row(stored)
  if #stored < NAMES_AT - 1 then
    error('Bad data format')
  end
  local row = { struct.unpack(NUMBERS, stored) }
  if row[FORMAT] ~= THIS_FORMAT then
    error('Bad data format')
  end
  local rest_at = NAMES_AT + row[HEADED_LENGTH]
  row[HEADED] = sub(stored, NAMES_AT, rest_at - 1)
  row[PAUSED_NAMES] = #stored >= rest_at and cmsgpack.unpack(sub(stored, rest_at)) or {}
  return row
end

local function write_row(base, row)
  local names = row[PAUSED_NAMES]
  row[HEADED_LENGTH] = #row[HEADED]
  call('SET', base, struct.pack(NUMBERS, unpack(row, 1, HEADED_LENGTH)) .. row[HEADED]
    .. (#names > 0 and cmsgpack.pack(names) or ''))
end

local function open_queue(base, given)
  local stored = call('GET', base)
  local q = { base = base, wakes = {}, row = stored and read_row(stored) }
  if not q.row then
    -- The epoch tells the events of this queue from those of one that was here before a FLUSHALL.
    local epoch = call('TIME')[2] + 1
    q.row = {
      THIS_FORMAT, epoch, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', {},
    }
    q.is_new = true
  end
  if given then
    q.now = given
  else
    local time, row = call('TIME'), q.row
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    -- A clock that was set back goes on from the newest instant stored.
    local skew = now >= row[AT] and 0 or math.max(row[SKEW], row[AT] - now)
    -- Told from the stored instant alone, the time would stand still while nothing happens.
    q.changed = skew ~= row[SKEW]
    row[SKEW] = skew
    q.now = now + skew
  end
  q.busy = q.row[WAITING] + q.row[ACTIVE]
  return q
end

local function wake(q, topic)
  q.wakes[topic] = true
end

local function close_queue(q)
  if q.changed then
    q.row[AT] = math.max(q.row[AT], q.now)
    write_row(q.base, q.row)
  end
  -- Whoever waits for events hears wakes of jobs too, because none comes without an event.
  if q.wakes.jobs then
    q.wakes.events = nil
  end
  for topic in pairs(q.wakes) do
    call('PUBLISH', q.base .. ':' .. topic, '')
  end
end

local function count(q, from, to, number)
  local row = q.row
  if from then
    row[from] = row[from] - number
  end
  if to then
    row[to] = row[to] + number
  end
  q.changed = true
end
