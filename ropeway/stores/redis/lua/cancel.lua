-- Cancels jobs that are not yet final, running ones included.
-- Takes the queue's base; [now, ids, reason, reason as JSON, default options] with false for no reason.
-- Returns two letters for each id: the verdict and the state before.
-- Uses: room, telling, leaving, changing, revoking, options
local now, ids, reason, reason_json, defaults = unpack(cmsgpack.unpack(ARGV[1]))
local q = open_queue(KEYS[1], now)
local base, answers, ends, told = q.base, {}, {}, {}
local RAN_TO_ITS_END = { completed = true, failed = true }

local function cancel(job)
  local id, run = job.id, job.run or blank_run(job.place)
  local keep = read_stored_options(q, job.value, defaults).keep
  leave(q, job)
  if job.state == 'active' then
    revoke(q, id, run, 'cancelled')
    if q.row[MAX_ACTIVE] > 0 then
      wake(q, 'jobs')
    end
  end
  run = without_token(ended_run(run, 'x', keep.piece, pack_time(q.now)))
  call('HSET', base .. ':runs', id, run)
  if reason then
    call('HSET', base .. ':reasons', id, reason)
  else
    call('HDEL', base .. ':reasons', id)
  end
  finish(q, ends, 'x', sequence_of(job.place) .. id, keep)
  count(q, COUNTERS[job.state], CANCELLED, 1)
  told[#told + 1] = '["' .. id .. '",{"prev":"' .. job.state .. '"}]'
end

for i = 1, #ids do
  local job = load_job(q, ids[i])
  if not job then
    answers[i] = 'm-'
  elseif RAN_TO_ITS_END[job.state] then
    answers[i] = 'r' .. LETTERS[job.state]
  else
    answers[i] = 'd' .. LETTERS[job.state]
    if job.state ~= 'cancelled' then
      cancel(job)
    end
  end
end
if #told > 0 then
  announce_all(q, 'cancel', 'cancelled', told, reason and '{"reason":' .. reason_json .. '}' or nil)
  retain(q, ends)
  notice_drained(q)
end
close_queue(q)
return table.concat(answers)
