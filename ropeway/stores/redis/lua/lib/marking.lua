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
  local drafts = q.notices or { newest = {}, last = {} }
  q.notices = drafts
  for i = 1, #notices, 2 do
    local what = notices[i]
    local place = drafts.newest[what] or 0
    -- Behind all that is announced about the job, so that its notices keep their order.
    if place <= (drafts.last[id] or 0) then
      place = #drafts + 1
      drafts[place], drafts.newest[what] = { what = what }, place
    end
    local jobs = drafts[place]
    jobs[#jobs + 1], drafts.last[id] = '["' .. id .. '",' .. notices[i + 1] .. ']', place
  end
  return run
end

-- As few entries as keep the notices of each job in order.
local function announce_notices(q)
  local drafts = q.notices or {}
  q.notices = nil
  for _, jobs in ipairs(drafts) do
    announce_all(q, jobs.what, nil, jobs)
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
