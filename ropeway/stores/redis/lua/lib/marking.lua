-- Writes marks of jobs: see lib/marks.lua.
-- Uses: pack, runs, announcing
-- What a marking has: names and values in turn, names of marks to delete, events and their details in turn.
local MARKS, FORGOTTEN, NOTICES = 1, 2, 3

-- The run of a job that is going to have marks, or to wait for one.
local function marked_run(q, id, run)
  if byte(run, MADE) == WITH_MARKS then
    return run
  end
  call('HSETNX', q.base .. ':past', id, 0)
  return sub(run, 1, MADE - 1) .. char(WITH_MARKS) .. sub(run, MADE + 1)
end

-- Deletes and writes marks, and notes what `announce_notices` announces. Returns the run that the job is to have.
local function mark(q, id, run, marking)
  local key, marks, notices = q.base .. ':marks:' .. id, marking[MARKS], marking[NOTICES]
  if byte(run, MADE) == WITH_MARKS then
    call_with('HDEL', key, marking[FORGOTTEN])
  end
  if #marks > 0 then
    local fields, time = {}, pack_time(q.now)
    for i = 1, #marks, 2 do
      fields[i], fields[i + 1] = marks[i], pack_text(marks[i + 1]) .. time
    end
    run = marked_run(q, id, run)
    call_with('HSET', key, fields)
  end
  q.notices = q.notices or {}
  for i = 1, #notices, 2 do
    local what, jobs = notices[i], q.notices[notices[i]]
    if not jobs then
      jobs = {}
      q.notices[#q.notices + 1], q.notices[what] = what, jobs
    end
    jobs[#jobs + 1] = '["' .. id .. '",' .. notices[i + 1] .. ']'
  end
  return run
end

-- One entry for each kind of event.
local function announce_notices(q)
  local notices = q.notices or {}
  q.notices = nil
  for _, what in ipairs(notices) do
    announce_all(q, what, nil, notices[what])
  end
end

-- Whether these marks end the delay of a job.
local function is_awaited(q, id, marking)
  local name = call('HGET', q.base .. ':marks:' .. id, '')
  for i = 1, name and #marking[MARKS] or 0, 2 do
    if marking[MARKS][i] == name then
      return true
    end
  end
  return false
end
