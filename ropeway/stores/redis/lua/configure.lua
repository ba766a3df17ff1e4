-- Changes the settings of a queue.
-- Takes the queue's base; [now, pause, names to pause, names to resume, max_active, stale_after, delete_after, callbacks] with
-- null for what stays, and the names as JSON, in the same order.
-- Returns paused, the paused names, max_active (0 for none), whether the queue is new, and fields and values of its stages.
-- Uses: events
local given = cmsgpack.unpack(ARGV[1])
local pause, to_pause, to_resume, max_active = given[2], given[3], given[4], given[5]
local q = open_queue(KEYS[1], given[1])
local row, names, before, paused, resumed = q.row, {}, {}, {}, {}
local has_changed = false

for _, name in ipairs(row[PAUSED_NAMES]) do
  names[name], before[name] = true, true
end
for _, pair in ipairs(to_pause) do
  names[pair[1]] = true
end
for _, pair in ipairs(to_resume) do
  names[pair[1]] = nil
end
if pause ~= nil and pause ~= (row[PAUSED] > 0) then
  row[PAUSED] = pause and 1 or 0
  announce(q, pause and '{{PAUSED}}' or '{{RESUMED}}', nil, 0)
  has_changed = true
end
for _, pair in ipairs(to_pause) do
  if names[pair[1]] and not before[pair[1]] then
    before[pair[1]] = true
    announce(q, '{{PAUSED}}', nil, 0, nil, '{"name":' .. pair[2] .. '}')
    has_changed = true
  end
end
for _, pair in ipairs(to_resume) do
  if before[pair[1]] then
    before[pair[1]] = nil
    announce(q, '{{RESUMED}}', nil, 0, nil, '{"name":' .. pair[2] .. '}')
    has_changed = true
  end
end
if max_active ~= nil and max_active ~= row[MAX_ACTIVE] then
  row[MAX_ACTIVE] = max_active
  has_changed = true
end
local list = {}
for name in pairs(names) do
  list[#list + 1] = name
end
table.sort(list)
row[PAUSED_NAMES], row[CONFIGURED], q.changed = list, math.max(row[CONFIGURED], 1), true

local function change_age(field, age)
  if age == 0 then
    call('HDEL', q.base .. ':stages', field)
  elseif age ~= nil then
    call('HSET', q.base .. ':stages', field, whole(age))
  end
end

local callbacks = given[8]
if given[6] ~= nil or given[7] ~= nil or callbacks ~= nil then
  row[CONFIGURED] = WITH_STAGES
  call('HSETNX', q.base .. ':stages', 'stale_until', 0)
  change_age('stale_after', given[6])
  change_age('delete_after', given[7])
  for _, stage in ipairs({{STAGES}}) do
    if callbacks and #callbacks == 0 then
      call('HDEL', q.base .. ':stages', stage)
    end
  end
  for _, stage in ipairs(callbacks or {}) do
    call('HSET', q.base .. ':stages', stage, 1)
  end
end
if has_changed then
  wake(q, 'jobs')
end
close_queue(q)
local stages = row[CONFIGURED] == WITH_STAGES and call('HGETALL', q.base .. ':stages') or {}
return { row[PAUSED], list, row[MAX_ACTIVE], q.is_new and 1 or 0, stages }
