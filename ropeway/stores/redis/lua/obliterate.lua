-- Pauses a queue and removes what is in it, a batch at a time; the last call forgets the queue.
-- Takes the queue's base; [now, whether active jobs go too].
-- Returns the ids it removed, whether there are more, and how many active jobs stood in the way.
-- Uses: room, removal
-- In flows: flows
-- With rules: leaving, expiry
local now, force = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, row = q.base, q.row
if q.is_new then
  return { {}, 0, 0 }
end
row[PAUSED], row[CONFIGURED], q.changed = 1, math.max(row[CONFIGURED], 1), true
if row[ACTIVE] > 0 and not force then
  close_queue(q)
  return { {}, 0, row[ACTIVE] }
end

local function some_ids()
  local states = {{FINAL}}
  states[#states + 1] = '{{DELAYED}}'
  states[#states + 1] = '{{WAITING_CHILDREN}}'
  for _, state in ipairs(states) do
    local members = call('ZRANGE', base .. ':' .. state, 0, BATCH - 1)
    if #members > 0 then
      for i = 1, #members do
        members[i] = sub(members[i], 8)
      end
      return members
    end
  end
  local locked = call('ZRANGE', base .. ':locks', 0, BATCH - 1)
  if #locked > 0 then
    return locked
  end
  local head = call('ZRANGE', base .. ':heads', 0, 0)[1]
  local members = head and call('ZRANGE', line_of(q, sub(head, 11)), 0, BATCH - 1) or {}
  for i = 1, #members do
    members[i] = sub(members[i], 11)
  end
  return members
end

local removed, jobs = {}, {}
while #removed < BATCH do
  local ids = some_ids()
  if #ids == 0 then
    break
  end
  jobs = {}
  for i = 1, math.min(#ids, BATCH - #removed) do
    jobs[#jobs + 1] = load_job(q, ids[i])
  end
  if #jobs == 0 then
    break
  end
  for _, id in ipairs(remove(q, jobs, true)) do
    removed[#removed + 1] = id
  end
end

if q.step then
  in_flows().conclude(q)
end
local left = 0
for counter = WAITING, CANCELLED do
  left = left + row[counter]
end
if left == 0 then
  -- As if the queue had never been; only the numbers of its events go on.
  for _, what in ipairs({
    ':events', ':metrics', ':minutes', ':heads', ':jobs', ':runs', ':extras', ':held', ':throttled', ':deadlines',
    ':schedules', ':planned', ':due', ':stages',
  }) do
    call('UNLINK', base .. what)
  end
  row[PAUSED], row[CONFIGURED], row[MAX_ACTIVE], row[PAUSED_NAMES] = 0, 0, 0, {}
  row[EVENTS_FROM], row[MINUTE], row[ADDED] = row[EVENTS], 0, 0
  row[DEADLINE], row[SCHEDULES] = 0, 0
end
close_queue(q)
return { removed, left > 0 and 1 or 0, 0 }
