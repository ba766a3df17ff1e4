-- Schedules: versioned records of a queue.
--
-- A value of `schedules` is a schedule's version, its next_at or -1, and the value that the client gave it.
-- Uses: removal, changing, announcing, bundle_fields
local SCHEDULE = { ID = 1, VALUE = 2, NEXT_AT = 3, EXPECT = 4, ADDS = 5, REMOVES = 6 }

-- The texts of the jobs of each write, and what these have rarely.
local function read_adds(writes, rare_of, texts)
  local all, text_at, number = {}, 1, 0
  for i = 1, #writes do
    local own, length = { rare_of = {} }, 0
    for j, job in ipairs(writes[i][SCHEDULE.ADDS]) do
      length, number = length + job[LENGTH], number + 1
      own.rare_of[j] = rare_of[number]
    end
    own.texts, text_at = sub(texts, text_at, text_at + length - 1), text_at + length
    all[i] = own
  end
  return all
end

local function store_schedule(q, id, there, version, next_at, value)
  local stored = struct.pack('>I4i8', version + 1, next_at or -1) .. value
  call('HSET', q.base .. ':schedules', id, stored)
  if not there then
    call('ZADD', q.base .. ':planned', 0, id)
    q.row[SCHEDULES] = q.row[SCHEDULES] + 1
  end
  if next_at then
    call('ZADD', q.base .. ':due', whole(next_at), id)
  else
    call('ZREM', q.base .. ':due', id)
  end
  q.changed = true
  return stored
end

local function drop_schedule(q, id)
  call('HDEL', q.base .. ':schedules', id)
  call('ZREM', q.base .. ':planned', id)
  call('ZREM', q.base .. ':due', id)
  q.row[SCHEDULES], q.changed = q.row[SCHEDULES] - 1, true
end

-- Adds jobs one by one.
local function add_jobs(q, names, jobs, own)
  local bundles = {}
  for i = 1, #jobs do
    bundles[i] = { jobs[i] }
  end
  local answer = #bundles > 0 and rarely().add_all({ q }, names, bundles, false, own.texts, own.rare_of) or { '' }
  return answer[1], answer[3] or {}
end

local function remove_unstarted(q, ids)
  local jobs, seen = {}, {}
  for i = 1, #ids do
    local job = not seen[ids[i]] and load_job(q, ids[i])
    if job and job.state ~= '{{ACTIVE}}' and not IS_FINAL[job.state] then
      jobs[#jobs + 1], seen[ids[i]] = job, true
    end
  end
  remove(q, jobs)
end

-- Does one write, unless another version is expected; `own` is what `read_adds` has for it.
local function write_schedule(q, names, write, own)
  local id, expected = write[SCHEDULE.ID], write[SCHEDULE.EXPECT]
  local there = call('HGET', q.base .. ':schedules', id)
  local version, stored = there and struct.unpack('>I4', there) or 0, ''
  if expected and expected ~= version then
    return { 0, there or '', '', {} }
  end
  if write[SCHEDULE.VALUE] then
    stored = store_schedule(q, id, there, version, write[SCHEDULE.NEXT_AT], write[SCHEDULE.VALUE])
  elseif there then
    drop_schedule(q, id)
  end
  local codes, holders = add_jobs(q, names, write[SCHEDULE.ADDS], own)
  remove_unstarted(q, write[SCHEDULE.REMOVES])
  return { 1, stored, codes, holders }
end
