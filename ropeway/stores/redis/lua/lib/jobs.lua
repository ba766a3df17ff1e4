-- Reads one job, and changes its run.
-- Uses: queue, states, pack, unpack, places, runs, new_runs
-- By the letter of a run.
local RUN_STATES = {{RUN_STATES}}

local function name_of(value)
  return (read_text(value, 1))
end

-- Token and worker of a run, as packed pieces.
local function holder_of(run)
  local worker_at = TOKEN + 1
  if byte(run, TOKEN) ~= 192 then
    worker_at = select(2, read_text(run, TOKEN))
  end
  return sub(run, TOKEN, worker_at - 1), sub(run, worker_at, -11)
end

-- A run from STARTED_AT on, with other counters, given as packed pieces; the flags that stand in the first byte of each stay
-- as they are.
local function with_counters(run, made, stalled)
  return sub(run, STARTED_AT, MADE - 1) .. sub(run, MADE, MADE)
    .. (made and sub(made, 2) or sub(run, MADE + 1, STARTS - 1)) .. sub(run, STARTS, STALLED)
    .. (stalled and sub(stalled, 2) or sub(run, STALLED + 1, TOKEN - 1)) .. sub(run, TOKEN)
end

-- The run of a job that waits again.
local function waiting_run(run, made, stalled)
  return 'o' .. NEVER .. NEVER .. with_counters(run, made, stalled)
end

-- Everything about one job that decides what may be done to it; nil if there is none.
local function load_job(q, id)
  local value = call('HGET', q.base .. ':jobs', id)
  if not value then
    return nil
  end
  local run, place = call('HGET', q.base .. ':runs', id), place_of(value)
  if run and is_folded(run) then
    run = unfold(q, id, run, place)
  end
  local job = { id = id, value = value, run = run, place = place }
  job.state = run and RUN_STATES[sub(run, 1, 1)]
  if not job.state then
    job.due = q.row[DELAYED] > 0 and call('ZSCORE', q.base .. ':delayed', sub(job.place, 4) .. id)
    job.state = job.due and '{{DELAYED}}' or '{{WAITING}}'
  end
  return job
end

-- The answer code for a lock that was lost.
local function lost_code(q, id)
  local job = load_job(q, id)
  return job and '{{LOST}}' .. STATE_CODES[job.state] or '{{MISSING}}'
end
