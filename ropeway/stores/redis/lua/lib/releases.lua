-- Parents that go on because their children have ended.
--
-- Those that go into line are written together, when `write_releases` is called: before anything looks at them again, or
-- announces something else.
-- Uses: steps, families, announcing, leaving_states, groups

local function write_releases(step)
  for _, q in ipairs(step.releasing) do
    local released = q.released
    call_with('ZREM', q.base .. ':' .. '{{WAITING_CHILDREN}}', released.members)
    call_with('HSET', q.base .. ':runs', released.runs)
    put_all_in_line(q, released.by_name)
    count(q, WAITING_CHILDREN, WAITING, #released.ids)
    announce(q, '{{RELEASE}}', '{{WAITING}}', #released.ids, each(released.ids, 'null'))
    wake(q, 'jobs')
    q.released = nil
  end
  step.releasing = {}
end

local function release_later(q, job, due_at)
  write_releases(step_of(q))
  leave_state(q, job)
  call('HSET', q.base .. ':runs', job.id, job.run)
  call('ZADD', q.base .. ':delayed', due_at, sub(job.place, 4) .. job.id)
  count(q, WAITING_CHILDREN, DELAYED, 1)
  announce(q, '{{RELEASE}}', '{{DELAYED}}', 1, each({ job.id }, '{"due_at":' .. whole(due_at) .. '}'))
  wake(q, 'jobs')
end

-- Lets a parent go on: it waits in line, or for its own delay.
local function release(q, family, job)
  local row, step = family.row, step_of(q)
  local due_at = row[FAMILY.DELAY] > 0 and math.min(q.now + row[FAMILY.DELAY], {{LAST_INSTANT}}) or row[FAMILY.DUE_AT]
  due_at = due_at and due_at > q.now and due_at
  row[FAMILY.IS_RELEASED], row[FAMILY.DELAY], row[FAMILY.DUE_AT] = true, 0, false
  job.run = 'o' .. sub(job.run, 2)
  if due_at then
    release_later(q, job, due_at)
    job.state = '{{DELAYED}}'
    return
  end
  local released = q.released
  if not released then
    released = { ids = {}, members = {}, runs = {}, by_name = {} }
    q.released, step.releasing[#step.releasing + 1] = released, q
  end
  local number = #released.ids + 1
  released.ids[number], released.members[number] = job.id, sequence_of(job.place) .. job.id
  released.runs[2 * number - 1], released.runs[2 * number] = job.id, job.run
  add_to(released.by_name, name_of(job.value), job.place .. job.id)
  job.state = '{{WAITING}}'
end
