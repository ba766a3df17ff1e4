-- Takes jobs out of the sets of their state.
-- Uses: lines, jobs

local function take_out_of_line(q, name, members)
  local line = line_of(q, name)
  local before = first_in(line)
  call_with('ZREM', line, members)
  forget_head(q)
  set_head(q, name, line, before)
end

-- Takes a job out of the sets of its state; the caller counts it.
local function leave_state(q, job)
  local state = job.state
  if state == '{{WAITING}}' then
    take_out_of_line(q, name_of(job.value), { job.place .. job.id })
  elseif state == '{{DELAYED}}' then
    call('ZREM', q.base .. ':delayed', sub(job.place, 4) .. job.id)
  elseif state == '{{ACTIVE}}' then
    call('ZREM', q.base .. ':locks', job.id)
  elseif state == '{{WAITING_CHILDREN}}' then
    call('ZREM', q.base .. ':' .. state, sequence_of(job.place) .. job.id)
  else
    local member = sequence_of(job.place) .. job.id
    call('ZREM', q.base .. ':' .. state, member)
    call('ZREM', q.base .. ':expiring:' .. state, member)
    call('ZREM', q.base .. ':kept:' .. state, member)
  end
end
